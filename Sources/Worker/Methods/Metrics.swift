internal import LineRPC
internal import Loading
internal import Threads

extension Session {
  /// Returns the metrics as OpenMetrics. The text is made on the disk thread.
  func metrics(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    _ = try Parameters(params, known: Method.metrics.parameters)
    collectFigures { [weak self, storage] figures in
      let source = WorkSource()
      storage.executor.run {
        let text = MetricsText.openMetrics.text(of: figures.families(.current()))
        LoadingActor.run(for: source) {
          self?.answer(token) { writer in
            writer.member("contentType", MetricsText.contentType)
            writer.member("text", text)
          }
        }
      }
    }
  }
}
