import MoultCommand

MoultCommand.run()
