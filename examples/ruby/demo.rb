#!/usr/bin/env ruby
# frozen_string_literal: true

# Loads the URLs given as arguments, all at once, and prints the outcome of each. The exit status is 1 if a load failed, and 69
# if the worker cannot be started.

require_relative "imageworker"

abort "usage: demo.rb URL..." if ARGV.empty? || ARGV.first.start_with?("-")
worker = ImageWorker.new
begin
  worker.ready
rescue ImageWorker::Error => error
  warn "demo.rb: #{error.message}"
  exit 69
end

failed = false
worker.load_all(ARGV) do |outcome|
  image, error = outcome.image, outcome.error
  failed ||= !error.nil?
  warn "#{error.kind}: #{error.message}  #{outcome.url}" if error
  puts "#{image.cache}  #{image.format} #{image.width} x #{image.height}  #{image.path}" if image
end
worker.close
exit 1 if failed
