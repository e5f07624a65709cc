import MoultBasics
import Testing

/// The schemas of the step protocol accept the examples in the documentation of the protocol, and refuse messages that
/// the documentation calls invalid.
@Suite struct StepSchemaTests {
    static let replies: [(text: String, isRight: Bool)] = [
        (#"{"reply":"result","protocol":1,"name":"a.b","summary":"s","planIsPure":true}"#, true),
        (
            #"{"reply":"result","effects":[{"change":{"do":"custom","name":"x","text":"y","with":{"writes":["/a"]}}}]}"#,
            true
        ),
        (#"{"reply":"result","fieldOfALaterVersion":1}"#, true),
        (#"{"reply":"progress","what":"index","done":1,"total":2}"#, true),
        (#"{"reply":"intent","id":1,"intent":{"path":"/a"}}"#, true),
        (#"{"reply":"error","message":"no","class":"refused","retryable":true}"#, true),
        (#"{"reply":"perhaps"}"#, false), (#"{"message":"plan"}"#, false), (#"{"reply":"error"}"#, false),
        (#"{"reply":"result","planIsPure":false}"#, false), (#"{"reply":"result","protocol":2}"#, false),
        (#"{"reply":"result","effects":[{"change":{"do":"switchCurrent"}}]}"#, false),
        (#"{"reply":"result","effects":[{"change":{"do":"custom","with":{"writes":["a"]}}}]}"#, false),
        (#"{"reply":"intent"}"#, false), (#"{"reply":"log"}"#, false),
    ]

    @Test(arguments: replies) func `the schema accepts valid replies only`(_ text: String, _ isRight: Bool) throws {
        let validator = SchemaValidator(try Schema.named("step-reply"))
        #expect(try validator.accepts(JSON(parsing: Array(text.utf8), source: "reply")) == isRight)
    }

    static let messages: [(text: String, isRight: Bool)] = [
        (#"{"message":"describe","protocol":1,"protocols":[1]}"#, true),
        (#"{"message":"intentAck","id":"x"}"#, true), (#"{"message":"cancel"}"#, true),
        (#"{"message":"clean","protocol":1,"ending":"undone"}"#, true),
        (#"{"message":"frobnicate","protocol":1}"#, false), (#"{"message":"plan","protocol":99}"#, false),
        (#"{"protocol":1}"#, false), (#"{"message":"clean","protocol":1,"ending":"well"}"#, false),
    ]

    @Test(arguments: messages) func `the schema accepts valid messages only`(_ text: String, _ isRight: Bool) throws {
        let validator = SchemaValidator(try Schema.named("step-message"))
        #expect(try validator.accepts(JSON(parsing: Array(text.utf8), source: "message")) == isRight)
    }
}
