import Testing

@testable import ImageCodec

struct TransformTests {
  private func transform(_ change: (inout Transform) -> Void) -> Transform {
    var transform = Transform()
    change(&transform)
    return transform
  }

  // MARK: - The canonical form

  @Test func `a transform that changes nothing has a name that is not the original's`() {
    #expect(Transform().canonical == "v3")
  }

  @Test func `defaults are left out and the order is fixed`() {
    let all = transform {
      $0.width = 640
      $0.height = 480
      $0.fit = .cover
      $0.enlarge = true
      $0.isOriented = false
      $0.crop = .init(x: -1, y: 2, width: 3, height: 4)
      $0.format = .jpeg
      $0.quality = 60
      $0.background = 0x00FF0A
      $0.blur = 1.5
      $0.isGrayscale = true
      $0.cornerRadius = 12
    }
    #expect(
      all.canonical
        == "v3,rotate=none,crop=-1:2:3:4,w=640,h=480,fit=cover,enlarge=1,blur=1.5,gray=1,radius=12,background=00ff0a"
        + ",format=jpeg,quality=60")
  }

  @Test func `an option without effect does not create another variant`() {
    let plain = transform { $0.width = 100 }
    #expect(
      transform {
        $0.width = 100
        $0.fit = .cover
      }.canonical == plain.canonical)
    #expect(transform { $0.enlarge = true }.canonical == Transform().canonical)
    let cover = transform { ($0.width, $0.height, $0.fit) = (10, 10, .cover) }
    #expect(
      transform {
        ($0.width, $0.height, $0.fit) = (10, 10, .cover)
        $0.focus = .point(x: 0.5, y: 0.5)
      }.canonical == cover.canonical)
    #expect(transform { $0.focus = .attention }.canonical == Transform().canonical)
    let png = transform { $0.format = .png }
    #expect(
      transform {
        $0.format = .png
        $0.quality = 10
        $0.background = 0
      }.canonical == png.canonical)
    for (format, quality) in [(ImageFormat.jpeg, 80), (.avif, 60)] {
      let usual = transform { $0.format = format }
      let asked = transform { ($0.format, $0.quality) = (format, quality) }
      #expect(usual.canonical == asked.canonical)
    }
  }

  @Test func `an option with an effect creates another variant`() {
    let box = transform {
      $0.width = 9
      $0.height = 9
    }
    var different = [box]
    for fit in Transform.Fit.allCases.dropFirst() {
      different.append(box)
      different[different.endIndex - 1].fit = fit
    }
    different += [
      transform { $0.width = 9 }, transform { $0.height = 9 }, transform { $0.isOriented = false },
      transform { $0.frames = .all }, transform { $0.background = 0 }, transform { $0.quality = 81 },
      transform { $0.quality = 80 },
      transform { $0.format = .avif }, transform { $0.blur = 0.1 }, transform { $0.isGrayscale = true },
      transform { $0.metadata = [.iso] }, transform { $0.metadata = [.iso, .make] },
      transform { $0.cornerRadius = 1 }, transform { $0.crop = .init(x: 0, y: 0, width: 1, height: 1) },
    ]
    #expect(Set(different.map(\.canonical)).count == different.count)
  }

  @Test(arguments: [
    "v3", "v3,w=1", "v3,crop=0:0:1:1,h=65535", "v3,w=5,h=6,fit=contain,background=000001", "v3,blur=250.0,frames=all",
    "v3,format=webp,quality=1", "v3,quality=80", "v3,format=webp,quality=80", "v3,format=avif,quality=80",
    "v3,rotate=none,gray=1,radius=3",
  ])
  func `the canonical form is parsed to the same transform`(text: String) throws {
    #expect(try #require(Transform(canonical: text)).canonical == text)
  }

  @Test(arguments: [
    "", "v2", "v3,", "v3,w", "v3,w=0", "v3,w=65536", "v3,w=01", "v3,w=1,w=2", "v3,h=1,w=1", "v3,fit=inside",
    "v3,fit=cover",
    "v3,crop=1:2:3", "v3,crop=0:0:0:1", "v3,crop=9999999999:0:1:1", "v3,blur=nan", "v3,blur=-1", "v3,blur=0.0",
    "v3,blur=1", "v3,format=bmp", "v3,quality=0", "v3,format=jpeg,quality=80", "v3,format=avif,quality=60",
    "v3,background=FFFFFF", "v3,background=+00001",
    "v3,gray=0", "v3,radius=-1", "v3,frames=some", "v3,w=1 ", "w=1", "v3,x=1",
  ])
  func `other texts than the canonical form are refused`(text: String) {
    #expect(Transform(canonical: text) == nil)
  }

  @Test(arguments: [
    (Transform.Focus.attention, "attention"), (.entropy, "entropy"), (.point(x: 0, y: 1), "0.0:1.0"),
    (.point(x: 0.25, y: 1e-5), "0.25:1e-05"),
  ])
  func `the focus of a cover is part of the name`(focus: Transform.Focus, name: String) {
    let cover = transform {
      ($0.width, $0.height, $0.fit) = (30, 20, .cover)
      $0.focus = focus
    }
    #expect(cover.canonical == "v3,w=30,h=20,fit=cover,focus=\(name)")
    #expect(Transform(canonical: cover.canonical) == cover)
  }

  @Test(arguments: [
    "middle", "0.5:0.5", "0.5", "0.5:", ":", "0.5:1.5", "-0.1:0.5", "nan:0.5", "0.1:0.2:0.3", "0.10:0.2", "attention:0",
  ])
  func `another focus is refused`(focus: String) {
    #expect(Transform(canonical: "v3,w=30,h=20,fit=cover,focus=\(focus)") == nil)
    #expect(Transform(canonical: "v3,w=30,h=20,focus=attention") == nil)
  }

  // MARK: - The format

  @Test func `the source's format is kept where it can be written`() {
    let keep = Transform()
    for format in [ImageFormat.jpeg, .png, .webp, .avif] {
      #expect(keep.outputFormat(of: format, hasAlpha: true, frames: 1) == format)
    }
    for format in [ImageFormat.gif, .heic, .tiff, .jxl] {
      #expect(keep.outputFormat(of: format, hasAlpha: true, frames: 1) == .png)
      #expect(keep.outputFormat(of: format, hasAlpha: false, frames: 1) == .jpeg)
    }
  }

  @Test func `an animation is kept as WebP`() {
    #expect(Transform().outputFormat(of: .gif, hasAlpha: true, frames: 3) == .webp)
  }

  @Test func `rounded corners stay transparent where the format is free`() {
    let round = transform { $0.cornerRadius = 4 }
    #expect(round.outputFormat(of: .gif, hasAlpha: false, frames: 1) == .png)
    #expect(round.outputFormat(of: .jpeg, hasAlpha: false, frames: 1) == .jpeg)
  }

  @Test func `the requested format is used`() {
    for format in Transform.writableFormats {
      let asked = transform { $0.format = format }
      #expect(asked.outputFormat(of: .png, hasAlpha: true, frames: 1) == format)
      #expect(Transform(canonical: asked.canonical) == asked)
    }
  }
}
