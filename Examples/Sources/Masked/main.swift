import MoultCommand

MoultCommand.run(steps: [MaskColumn()])
