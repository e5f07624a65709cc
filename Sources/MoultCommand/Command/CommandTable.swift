extension Command {
    /// Every verb, in the order of the overview.
    package static let all: [Command] = [
        InitVerb.command,
        PlanVerb.command,
        ApplyVerb.command,
        StatusVerb.command,
        HistoryVerb.command,
        VerifyVerb.command,
        RollbackVerb.command,
        HoldVerb.command,
        UnholdVerb.command,
        RecoverVerb.command,
        CleanVerb.command,
        WhoVerb.command,
        WatchVerb.command,
        DoctorVerb.command,
        SQLVerb.command,
        AttachVerb.command,
        BuildVerb.command,
        PackVerb.command,
        StepsVerb.command,
        InspectVerb.command,
        DiffVerb.command,
        HelpVerb.command,
        CompletionsVerb.command,
    ]
}
