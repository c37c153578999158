internal import Platform
internal import Text

/// A worker's lock file `workers/INSTANCE.lock`, on which it holds an flock for its lifetime.
///
/// A lock file that can be locked belongs to a worker that died; a worker that ends normally removes its own.
final class PeerLock {
  /// This worker's number, unique among all workers that ever used the directory: 31 random bits.
  let instance: Int32
  private let descriptor: Int32
  private let folder: CacheFolder

  static let directory = "workers"

  init(in folder: CacheFolder, random: () -> UInt64) throws(FileError) {
    self.folder = folder
    while true {
      let number = Int32(truncatingIfNeeded: random() >> 33)
      let path = Self.path(of: number)
      let file: Int32
      do throws(FileError) {
        file = try folder.files.createFile(path, in: folder.descriptor)
      } catch {
        if error.code == EEXIST { continue }
        throw error
      }
      do throws(FileError) {
        // A worker that starts between the two calls may have taken the file for that of a dead worker and removed it.
        if try folder.files.lock(file, path), try folder.files.status(of: file, path).st_nlink > 0 {
          instance = number
          descriptor = file
          return
        }
        close(file)
      } catch {
        close(file)
        throw error
      }
    }
  }

  deinit { close(descriptor) }

  /// Removes the lock file, since there is nothing to sweep.
  func remove() { try? folder.files.remove(Self.path(of: instance), in: folder.descriptor) }

  /// The lock file of a dead worker, held so that no other worker sweeps its files at the same time.
  final class DeadPeer {
    let instance: Int32
    private let descriptor: Int32
    private let folder: CacheFolder

    init(instance: Int32, descriptor: Int32, folder: CacheFolder) {
      self.instance = instance
      self.descriptor = descriptor
      self.folder = folder
    }

    deinit { close(descriptor) }

    /// Removes the lock file. Must be called after the files of the worker are swept.
    func remove() { try? folder.files.remove(PeerLock.path(of: instance), in: folder.descriptor) }
  }

  /// The dead workers, and the instance numbers of the living ones.
  ///
  /// - Parameter known: the numbers of workers to leave out: this one, and dead ones whose lock files are held already.
  static func survey(
    _ folder: CacheFolder, except known: [Int32] = []
  ) throws(FileError) -> (dead: [DeadPeer], living: Set<Int32>) {
    var dead: [DeadPeer] = []
    var living: Set<Int32> = []
    for name in try folder.files.list(directory, in: folder.descriptor) {
      guard let number = instance(of: name), !known.contains(number) else { continue }
      let path = path(of: number)
      guard let file = try? folder.files.openFile(path, in: folder.descriptor) else { continue }
      if (try? folder.files.lock(file, path)) ?? false {
        dead.append(DeadPeer(instance: number, descriptor: file, folder: folder))
      } else {
        close(file)
        living.insert(number)
      }
    }
    return (dead, living)
  }

  /// The instance numbers of the living workers, for a process that has no lock file itself.
  static func living(in folder: CacheFolder) -> Set<Int32> { (try? survey(folder))?.living ?? [] }

  /// Whether a living or dead worker has this instance number.
  func exists(_ instance: Int32) -> Bool {
    instance == self.instance || (try? folder.files.status(Self.path(of: instance), in: folder.descriptor)) != nil
  }

  private static func path(of instance: Int32) -> String {
    directory + "/" + hexadecimal(UInt64(UInt32(bitPattern: instance)), digits: 8) + ".lock"
  }

  private static func instance(of name: String) -> Int32? {
    guard name.utf8.count == 13, name.hasSuffix(".lock") else { return nil }
    return UInt32(name.prefix(8), radix: 16).flatMap(Int32.init(exactly:))
  }
}
