// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

func module(_ name: String, uses dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(of name: String, uses dependencies: [Target.Dependency] = []) -> Target {
  .testTarget(name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies, swiftSettings: strict)
}

/// With the runtime inside, the worker starts 4 ms earlier; ThreadSanitizer needs the shared one. Without exported
/// symbols, and linked by lld, the programs are 4 % smaller.
let program: [LinkerSetting] = [
  .unsafeFlags(
    ["-static-stdlib", "-use-ld=lld", "-Xlinker", "--no-export-dynamic"],
    .when(platforms: [.linux], configuration: .release))
]

let package = Package(
  name: "ImageWorker",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "imageworker", targets: ["imageworker"]),
    .executable(name: "imageworker-codec", targets: ["imageworker-codec"]),
    .executable(name: "imageworker-plain", targets: ["imageworker-plain"]),
  ],
  dependencies: [],
  targets: [
    .executableTarget(
      name: "imageworker",
      dependencies: ["Worker"],
      linkerSettings: program
    ),
    .target(
      name: "Worker",
      dependencies: [
        "LineRPC", "Loading", "HTTPTransport", "HTTPCaching", "HTTPTypes", "ImageStore", "ImageCodec",
        "Tracing", "Text", "Threads", "Platform", "CSystem",
      ],
      // A link to protocol/openrpc.json, which --describe prints.
      resources: [.embedInCode("openrpc.json")],
      swiftSettings: strict
    ),
    module("LineRPC", uses: ["Text", "Threads", "Platform"]),
    module("Tracing", uses: ["LineRPC", "Threads", "Platform"]),
    module(
      "Loading",
      uses: [
        "HTTPTransport", "HTTPCaching", "HTTPTypes", "ImageStore", "ImageCodec", "Tracing", "Text", "Threads",
        "Platform",
      ]),
    module("HTTPTransport", uses: ["HTTPTypes", "Text", "Threads", "Platform", "CCurl", "CAres", "CTLS", "CZlib"]),
    module("HTTPCaching", uses: ["HTTPTypes", "Text"]),
    module("HTTPTypes", uses: ["Text", "Platform", "CIDN2"]),
    module(
      "ImageStore",
      uses: [
        "HTTPCaching", "HTTPTypes", "ImageTypes", "Text", "Threads", "Platform", "CSQLite", "CCrypto", "CSystem",
      ]),
    module("ImageCodec", uses: ["ImageTypes", "Text", "Threads", "Platform", "CSystem", "CZlib"]),
    module("ImageTypes"),
    module(
      "CodecCore",
      uses: [
        "ImageCodec", "CodecSandbox", "Platform", "CSystem", "CVectors", "CJPEG", "CDeflate", "CZlib", "CLCMS",
        "CWebP",
      ]),
    module(
      "Codec",
      uses: [
        "CodecCore", "ImageCodec", "CodecSandbox", "Platform", "CVips", "CJPEG", "CWebP", "CLCMS", "CAVIF", "CRSVG",
      ]),
    .executableTarget(
      name: "imageworker-plain",
      dependencies: ["CodecCore"],
      linkerSettings: program
    ),
    .executableTarget(
      name: "imageworker-codec",
      dependencies: ["Codec"],
      linkerSettings: program
    ),
    module("CodecSandbox", uses: ["Platform", "CSystem"]),
    module("Threads", uses: ["Platform"]),
    module("Platform", uses: ["CStart"]),
    module("Text", uses: ["Platform"]),
    .target(name: "CStart"),
    .systemLibrary(name: "CSystem"),
    .systemLibrary(name: "CVectors"),
    .systemLibrary(name: "CVips", pkgConfig: "vips", providers: [.apt(["libvips-dev"]), .brew(["vips"])]),
    .systemLibrary(name: "CJPEG", pkgConfig: "libjpeg", providers: [.apt(["libjpeg-dev"]), .brew(["jpeg-turbo"])]),
    .systemLibrary(
      name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"]), .brew(["libdeflate"])]),
    .systemLibrary(name: "CWebP", pkgConfig: "libwebp", providers: [.apt(["libwebp-dev"]), .brew(["webp"])]),
    .systemLibrary(name: "CLCMS", pkgConfig: "lcms2", providers: [.apt(["liblcms2-dev"]), .brew(["little-cms2"])]),
    .systemLibrary(name: "CAVIF", pkgConfig: "libavif", providers: [.apt(["libavif-dev"]), .brew(["libavif"])]),
    .systemLibrary(
      name: "CRSVG", pkgConfig: "librsvg-2.0", providers: [.apt(["librsvg2-dev"]), .brew(["librsvg"])]),
    .systemLibrary(name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"]), .brew(["libidn2"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"]), .brew(["c-ares"])]),
    .systemLibrary(name: "CTLS", pkgConfig: "libssl", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite3"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    tests(of: "LineRPC", uses: ["Text", "Threads", "Platform"]),
    tests(of: "Tracing", uses: ["LineRPC", "Threads", "Platform"]),
    tests(
      of: "Loading",
      uses: [
        "HTTPTransport", "HTTPCaching", "HTTPTypes", "ImageStore", "ImageCodec", "Tracing", "Text", "Threads",
        "Platform",
      ]),
    tests(of: "HTTPTransport", uses: ["HTTPTypes", "Threads", "Platform", "CZlib"]),
    tests(of: "HTTPCaching", uses: ["HTTPTypes"]),
    tests(of: "HTTPTypes"),
    tests(of: "ImageStore", uses: ["HTTPCaching", "HTTPTypes", "Text", "Threads", "Platform", "CSQLite", "CSystem"]),
    tests(of: "ImageCodec", uses: ["CAVIF", "CVectors", "CZlib"]),
    .executableTarget(
      name: "sandbox-probe", dependencies: ["CodecCore", "CodecSandbox", "ImageCodec", "Platform", "CSystem"],
      path: "Tests/SandboxProbe",
      swiftSettings: strict),
    tests(of: "Threads"),
    tests(of: "Text"),
    tests(of: "Worker", uses: ["LineRPC", "Loading", "ImageStore", "HTTPTypes", "Threads"]),
  ],
  swiftLanguageModes: [.v6]
)
