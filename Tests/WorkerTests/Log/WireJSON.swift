import LineRPC

/// The JSON values of the worker. The tests have a `JSON` of their own.
typealias WireJSON = LineRPC.JSON
