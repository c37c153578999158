# frozen_string_literal: true

# Variants and analysis of pictures in Active Storage, by ImageWorker instead of ImageMagick or libvips. See README.md.

require "active_storage"
require "mini_mime"
require "tempfile"
require [__dir__, "#{__dir__}/../ruby"].map { |folder| "#{folder}/imageworker.rb" }.find { |file| File.exist?(file) }

module ActiveStoragePictures
  # The picture is at fault. The same request fails again.
  class Refused < ActiveStorage::InvariableError; end

  # The same request may succeed later.
  class Busy < ActiveStorage::Error; end

  # The variant asks for something that the worker cannot do. Correct the program.
  class Unsupported < ArgumentError; end

  # All threads share it. It starts at the first picture, in each process. It stores nothing.
  mattr_accessor :worker, default: ImageWorker.new(memory_limit: 0, disk_limit: 0, deadline_ms: 60_000)

  ATTEMPTS = 3
  LONGEST_PAUSE_MS = 2_000 # A thread of the server waits so long.

  # The worker's `process`, with the errors above. An error of the site, such as a full disk, is raised as it is.
  def self.process(file, **params)
    attempt ||= 1
    worker.process(file, **params)
  rescue ImageWorker::Error => error
    later = error.retryable? || error.kind == "overloaded"
    pause = error.data[:retry_after_ms] || 100 * attempt
    if later && attempt < ATTEMPTS && pause <= LONGEST_PAUSE_MS
      sleep(pause / 1000.0)
      attempt += 1
      retry
    end
    case error
    when ->(_) { later }, ImageWorker::TimeoutError, ImageWorker::CancelledByRequest then raise Busy, error.message
    when ImageWorker::InvalidParamsError # With an output: it does not fit the picture, such as a crop outside of it.
      raise error.data[:output] ? Refused : Unsupported, error.message
    when ImageWorker::ContentError, ImageWorker::PolicyError
      lacks_format = error.kind == "unsupportedFormat" && error.data[:output]
      raise lacks_format ? Unsupported : Refused, error.message
    else raise
    end
  end

  # Width and height as browsers show the picture.
  class Analyzer < ActiveStorage::Analyzer
    def self.accept?(blob) = blob.image?

    def metadata
      download_blob_to_tempfile do |file|
        facts = ActiveStoragePictures.process(file)
        shown = facts.upright || facts
        { width: shown.width, height: shown.height }.compact
      end
    rescue Refused => error
      logger&.info "Skipping image analysis: #{error.message}"
      {}
    end
  end

  # For ActiveStorage::Variation, which has no option for the class of its transformer.
  module Variation
    private

    def transformer = Transformer.new(transformations.except(:format))
  end

  # Translates the macros of image_processing, and what both of its processors have. Anything else is Unsupported.
  class Transformer < ActiveStorage::Transformers::Transformer
    BOXES = {
      resize_to_limit: { fit: "inside" },
      resize_to_fit: { fit: "inside", enlarge: true },
      resize_to_fill: { fit: "cover", enlarge: true },
      resize_and_pad: { fit: "contain", enlarge: true }
    }.freeze
    GEOMETRIES = { nil => :resize_to_fit, ">" => :resize_to_limit }.freeze
    KNOWN = [*BOXES.keys, :crop, :convert, :saver, :loader, :quality, :background, :colourspace, :gaussblur].freeze

    private

    def process(file, format:)
      transform = translated(format)
      output = Tempfile.new(["variant", ".#{transform[:format]}"])
      variant = { transform: transform, save_to: output.path, mode: "600" }
      ActiveStoragePictures.process(file, outputs: { variant: variant })
      output.tap(&:open).tap(&:binmode) # The worker has put another file in its place.
    rescue Exception
      output&.close!
      raise
    end

    def translated(format)
      @transform = { format: written(format) }
      transformations.each { |name, argument| translate(name, argument) if argument.present? }
      @transform.delete(:frames) unless %w[gif webp].include?(@transform[:format])
      bare = @transform[:fit] == "contain" && !@transform[:background]
      refuse "resize_and_pad needs background: \"#rrggbb\"" if bare && @transform[:format] != "jpeg"
      @transform
    end

    def translate(name, argument)
      case name
      when *BOXES.keys then resize(name, *argument)
      when :resize
        size = /\A(?<width>\d+)?(?:x(?<height>\d+)?)?(?<flag>>)?\z/.match(argument.to_s)
        refuse "resize: #{argument.inspect} is for ImageMagick. Use #{BOXES.keys.join(", ")}" unless size
        resize(GEOMETRIES.fetch(size[:flag]), size[:width]&.to_i, size[:height]&.to_i)
      when :crop
        size = /\A(\d+)x(\d+)\+(\d+)\+(\d+)\z/.match(argument) if argument.is_a?(String)
        left, top, width, height, *others = size ? size.captures.map(&:to_i).rotate(2) : argument
        refuse "crop is [left, top, width, height] or \"WIDTHxHEIGHT+LEFT+TOP\"" unless height && others.empty?
        refuse "crop is done before the size: name it first in the variant" if @transform[:fit]
        add crop: { x: left, y: top, width: width, height: height }
      when :convert then @transform[:format] = written(argument)
      when :quality then add quality: argument
      when :background then add background: color(argument)
      when :gaussblur then add blur: argument
      when :colourspace, :colorspace then colours(argument.to_s)
      when :saver, :loader
        refuse "#{name} is a hash, such as { quality: 80 }" unless argument.is_a?(Hash)
        argument.each { |option, value| option(name, option, value) }
      when :strip, :auto_orient # It is always done.
      when :rotate then refuse "rotate: a picture is turned only as its EXIF orientation says, and always so"
      else refuse "ImageWorker has no #{name}. A variant can have #{KNOWN.join(", ")}"
      end
    end

    def resize(name, width, height = nil, options = {}, *others)
      refuse "#{name} needs a width or a height" unless width || height
      refuse "#{name} is [width, height] or [width, height, { ... }]" unless options.is_a?(Hash) && others.empty?
      refuse "gaussblur is done after the size: name it last in the variant" if @transform[:blur]
      height ||= width if name == :resize_to_fill # As in libvips.
      add width: width, height: height, **BOXES[name]
      options.each { |option, value| option(name, option, value) }
    end

    def option(name, option, value)
      case [name, option, value]
      in [:saver, :quality | :Q, _] then add quality: value
      in [:saver, :strip, true] | [:loader, :page, 0] | [_, :sharpen, false] then nil # It is always so.
      in [:loader, :page, nil] | [:loader, :n, -1] then add frames: "all"
      in [:loader, :auto_orient | :autorot, true | false] then add rotate: value ? "auto" : "none"
      in [:resize_and_pad, :background, _] then add background: color(value)
      in [:resize_to_fill, :gravity, _] then add crop: point(value.to_s.downcase)
      in [:resize_to_fill, :crop, "attention" | "entropy" | :attention | :entropy] then add crop: value.to_s
      else refuse "ImageWorker has no #{name} with #{option}: #{value.inspect}"
      end
    end

    def point(gravity)
      known = gravity.match?(/\A(cent(er|re)|(north|south)(east|west)?|east|west)\z/)
      refuse "gravity is Center, North, NorthEast and so on" unless known
      { x: { "west" => 0, "east" => 1 }.fetch(gravity[/east|west/], 0.5),
        y: { "north" => 0, "south" => 1 }.fetch(gravity[/north|south/], 0.5) }
    end

    def colours(space)
      refuse "the colours of a variant are srgb or b-w" unless %w[srgb b-w gray].include?(space.downcase)
      add grayscale: true unless space.casecmp?("srgb")
    end

    def color(value)
      text = value.is_a?(Array) && value.size == 3 && value.all?(Integer) ? format("#%02x%02x%02x", *value) : value.to_s
      text.match?(/\A#\h{6}\z/) ? text : refuse("background is \"#rrggbb\" or [red, green, blue]")
    end

    def written(format)
      type = MiniMime.lookup_by_extension(format.to_s.downcase)&.content_type.to_s
      known = %w[jpeg png webp gif avif].find { |each| type == "image/#{each}" }
      known or refuse "a variant cannot be written as #{format}"
    end

    def add(**members)
      twice = @transform.keys & members.keys
      refuse "a variant can have only one #{twice.join(", ")}" unless twice.empty?
      @transform.merge!(members)
    end

    def refuse(text) = raise(Unsupported, text)
  end
end
