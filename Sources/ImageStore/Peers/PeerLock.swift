#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A worker's sign of life: a file `workers/INSTANCE.lock` that it holds an flock on until it ends, in whatever way.
///
/// A lock file that can be locked belongs to a worker that died. One that ended properly removed its own.
final class PeerLock {
  /// This worker's number among all that ever used the directory: 31 random bits.
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
        // Between the two calls a starting worker may have taken the file for a dead one's.
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

  /// Removes the sign: nothing is left to sweep.
  func remove() { try? folder.files.remove(Self.path(of: instance), in: folder.descriptor) }

  /// A dead worker's lock file, held so that no one else sweeps for it at the same time.
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

    /// Call it when nothing of the worker is left.
    func remove() { try? folder.files.remove(PeerLock.path(of: instance), in: folder.descriptor) }
  }

  /// The remains of dead workers, and the numbers of the others that live.
  ///
  /// - Parameter known: dead workers whose remains are held already.
  func detectDeadPeers(except known: [Int32]) throws(FileError) -> (dead: [DeadPeer], living: Set<Int32>) {
    var dead: [DeadPeer] = []
    var living: Set<Int32> = []
    for name in try folder.files.list(Self.directory, in: folder.descriptor) {
      guard let number = Self.instance(of: name), number != instance, !known.contains(number) else { continue }
      let path = Self.path(of: number)
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

  /// Whether a worker has, or had when it died, this number.
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
