import MoultBasics
import Testing

/// Tests that the validator applies each keyword: one value is accepted, and another is refused.
@Suite struct SchemaValidatorTests {
    @Test(arguments: [
        (#"{ "type": "object" }"#, "{}", "[]"),
        (#"{ "type": "array" }"#, "[]", "{}"),
        (#"{ "type": "string" }"#, #""a""#, "null"),
        (#"{ "type": "boolean" }"#, "false", "0"),
        (#"{ "type": "integer" }"#, "1", "1.5"),
        (#"{ "type": "integer" }"#, "1.0", #""1""#),
        (#"{ "enum": ["a", "b"] }"#, #""b""#, #""c""#),
        (#"{ "const": 1 }"#, "1.0", "2"),
        (#"{ "minimum": -1 }"#, "-1", "-2"),
        (#"{ "maximum": 2 }"#, "2", "2.5"),
        (#"{ "maxLength": 2 }"#, #""é€""#, #""abc""#),
        (#"{ "pattern": "^a+$" }"#, #""aa""#, #""ab""#),
        (#"{ "pattern": "^a$" }"#, #""a""#, #""a\n""#),
        (#"{ "pattern": "^(?!b)" }"#, "5", #""b""#),
        (#"{ "required": ["a"] }"#, #"{ "a": null }"#, #"{ "b": 1 }"#),
        (#"{ "minProperties": 1 }"#, #"{ "a": 1 }"#, "{}"),
        (#"{ "properties": { "a": { "type": "string" } } }"#, #"{ "b": 1 }"#, #"{ "a": 1 }"#),
        (#"{ "properties": { "a": {} }, "additionalProperties": false }"#, #"{ "a": 1 }"#, #"{ "b": 1 }"#),
        (#"{ "additionalProperties": { "type": "string" } }"#, #"{ "a": "" }"#, #"{ "a": 1 }"#),
        (#"{ "propertyNames": { "maxLength": 1 } }"#, #"{ "a": 1 }"#, #"{ "ab": 1 }"#),
        (#"{ "items": { "type": "string" } }"#, #"["a"]"#, #"["a", 1]"#),
        (#"{ "dependentSchemas": { "a": { "required": ["b"] } } }"#, #"{ "c": 1 }"#, #"{ "a": 1 }"#),
        (#"{ "anyOf": [{ "type": "string" }, { "minimum": 3 }] }"#, "3", "2"),
        (#"{ "oneOf": [{ "type": "integer" }, { "minimum": 3 }] }"#, "2", "3"),
        (#"{ "not": { "type": "string" } }"#, "1", #""a""#),
        (#"{ "if": { "type": "integer" }, "then": { "minimum": 3 } }"#, #""a""#, "2"),
        (##"{ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } }"##, #""a""#, "1"),
        (#"{ "properties": { "a": false } }"#, "{}", #"{ "a": 1 }"#),
    ])
    func `each keyword of a schema is applied`(_ schema: String, _ right: String, _ wrong: String) throws {
        let validator = SchemaValidator(try Schema(JSON(parsing: schema, source: "schema")))
        #expect(try validator.accepts(JSON(parsing: right, source: "right")))
        #expect(try !validator.accepts(JSON(parsing: wrong, source: "wrong")))
    }

    @Test(arguments: [
        #"{ "minItems": 1 }"#, #"{ "properties": { "a": { "Type": "string" } } }"#,
        #"{ "anyOf": [{ "else": {} }] }"#, #"{ "$defs": { "a": { "contains": {} } } }"#,
    ])
    func `unknown keywords of a schema are refused`(_ schema: String) {
        #expect(throws: Schema.Fault.self) { try Schema(JSON(parsing: schema, source: "schema")) }
    }
}
