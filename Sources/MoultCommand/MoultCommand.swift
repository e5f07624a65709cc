internal import Moult

/// The command `moult`.
public enum MoultCommand {
    public static func run() {}
}
