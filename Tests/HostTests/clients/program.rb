#!/usr/bin/env ruby
# frozen_string_literal: true

# The protocol on standard input and output, with the Ruby client in between. client_tests.py tells what is asked of it.

require "base64"
require_relative "../../../examples/ruby/imageworker"

# A result as the protocol has it.
def wire(value, keep_nil: false)
  case value
  when Struct
    names = value.class::WIRE.invert
    value.to_h.filter_map { |name, each| [names[name], name == :data ? Base64.strict_encode64(each) : wire(each)] if keep_nil || !each.nil? }.to_h
  when Hash then value.transform_values { |each| wire(each) }
  when Array then value.map { |each| wire(each) }
  else value
  end
end

# Parameters as a Ruby program writes them.
def ruby(value, verbatim: false)
  case value
  when Hash then value.to_h { |name, each| [verbatim ? name : ImageWorker.snake(name), ruby(each, verbatim: %w[headers outputs].include?(name))] }
  when Array then value.map { |each| ruby(each) }
  else value
  end
end

MEMBERS = ImageWorker::Image::WIRE.invert.freeze

def named(params) = params.to_h { |name, each| [MEMBERS[name] || ImageWorker.camel(name), wire(each)] }

def members(type)
  return members(type.first) if type.is_a?(Array)
  return members(type[String]) if type.is_a?(Hash)
  type::WIRE.keys.to_h { |name| [name, (nested = type::NESTED[name.to_sym]) && nested != :bytes ? members(nested) : {}] }
end

if ARGV == ["--names"]
  classes = ImageWorker::CLASSES.transform_values { |type| type.ancestors.grep(Class).take_while { |each| each != StandardError }.map(&:name) }
  results = ImageWorker::RESULTS.transform_values { |type| members(type) }
  puts JSON.generate(params: ImageWorker::PARAMS, results: { **results, shutdown: {} }, classes: classes)
  exit
end

$stdout.sync = true
PRINT = Mutex.new
def say(message) = PRINT.synchronize { puts JSON.generate({ jsonrpc: "2.0", **message }) }

def refusal(error)
  data = named(error.data)
  { code: error.code, message: error.message, data: { **data, "kind" => error.kind, "retryable" => error.retryable } }
end

# What is asked of the program itself.
def own(worker, method, params)
  case method
  when "pid" then worker.pid
  when "open" then (@files ||= []).push(File.open(params["path"])).last.fileno
  when "ready" then wire(worker.ready)
  when "loadAll" then worker.load_all(params["urls"], max_in_flight: 3).map { |it| [it.index, it.image&.width || it.error.kind] }
  when "takePixels" then worker.take_pixels(worker.load(params["url"], deliver: "pixels")).bytesize
  when "queryBinary" then worker.query(key: [params["key"]].pack("H*").force_encoding("UTF-8"))
  when "close" then worker.close
  end
end

binary = ENV["WORKER_OF_CLIENT"]
worker = ImageWorker.new(binary: binary, arguments: ARGV, max_restarts: 3, longest_pause_ms: 1000, on_log: ->(line) { warn line })
calls = {}
threads = []
$stdin.each_line do |line|
  request = JSON.parse(line)
  id, method = request.values_at("id", "method")
  params = request["params"] || {}
  if request["program"]
    threads << Thread.new do
      say(id: id, result: own(worker, request["program"], params))
    rescue ImageWorker::Error => error
      say(id: id, error: refusal(error))
    end
    next
  end
  if method == "shutdown"
    threads << Thread.new { worker.shutdown(**ruby(params)) && say(id: id, result: {}) }
    next
  end
  params["id"] = calls.fetch(params["id"]) if params.key?("id") && calls.key?(params["id"])
  params["data"] = Base64.strict_decode64(params["data"]) if params["data"]
  params["events"] ||= nil if %w[load prefetch].include?(method) # Otherwise the client chooses.
  handler = ->(event) { say(method: event.name, params: { **named(event.params), "id" => id }) }
  deadline = request["giveUpAfter"]&.+(ImageWorker.now)
  begin
    if method == "configure" # In order, and remembered.
      say(id: id, result: wire(worker.configure(**ruby(params)), keep_nil: true))
      next
    end
    call = worker.submit(method, deadline: deadline, **ruby(params), &handler)
  rescue ImageWorker::Error => error
    say(id: id, error: refusal(error))
    next
  rescue ArgumentError => error # The client knows all parameters.
    data = { kind: "invalidParams", retryable: false, member: error.message[/\w+\z/] }
    say(id: id, error: { code: -32_602, message: error.message, data: data })
    next
  end
  calls[id] = call.id
  threads << Thread.new do
    say(id: id, result: wire(call.value(deadline: deadline)))
  rescue ImageWorker::Error => error
    say(id: id, error: refusal(error))
  end
end
worker.close(drain: true)
threads.each(&:join)
