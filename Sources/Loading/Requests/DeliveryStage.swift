/// The results that a load delivers, in their order.
enum DeliveryStage: Comparable, CaseIterable {
  /// The cached image that a load with `refresh` shows before its answer.
  case cachedEvent
  /// The result that ends the load.
  case answer
}
