# frozen_string_literal: true

# ImageWorker for Ruby: one file, only the standard library, Ruby 3.1 or newer.
#
#     worker = ImageWorker.new(max_per_host: 8)
#     image = worker.load("https://example.com/cat.jpg", transform: { width: 256 })
#     puts image.path, image.width, image.height
#     worker.close
#
# - Any number of threads may call at once. The worker starts at the first call.
# - A call whose thread stops waiting (give_up_after, Timeout, Thread#kill, an error of its block) is cancelled.
# - If the worker dies, pending calls fail with WorkerExited. The next call starts another worker, after a pause.
# - A forked child has nothing of the parent's worker, and starts its own at its first call.
#
# The protocol is in protocol/README.md.

require "json"

class ImageWorker
  VERSION = "0.1.0"
  PROTOCOL_VERSION = 1

  # Errors

  # An error of the worker or of this client. `code` is the number of the protocol, nil for errors of this client.
  # `data` has the members of the protocol's error, in snake case.
  class Error < StandardError
    attr_reader :kind, :code, :retryable, :data

    def initialize(message, code: nil, **data)
      super(message)
      @code = code
      @kind = data[:kind] || "internal"
      @retryable = data[:retryable] || false
      @data = data
    end

    alias retryable? retryable

    def url = data[:url]

    # The error of an answer, in the class of its kind; of an unknown kind, in the class of its code.
    def self.of(error)
      code = error["code"] || -32_603
      data = (error["data"] || {}).transform_keys { |name| ImageWorker.snake(name) }
      data[:response] &&= ImageWorker.read(HTTPResponse, data[:response])
      data[:timing] &&= ImageWorker.read(Timing, data[:timing])
      family = CLASSES[data[:kind]] || FAMILIES[code / 1000] || (data[:kind] ? RequestError : InternalError)
      family.new(error["message"] || "the answer cannot be read", code: code, **data)
    end
  end

  # The request is wrong. Correct the program.
  class RequestError < Error; end

  # A parameter is missing, unknown, of the wrong type or out of range.
  class InvalidParamsError < RequestError
    def member = data[:member]
  end

  # The worker failed, not the request.
  class InternalError < Error; end

  # `cancel`, another load in the same slot, or `close` cancelled the request.
  class CancelledByRequest < Error; end

  # The image could not be transferred.
  class NetworkError < Error; end

  # The connection failed.
  class TransportError < NetworkError; end

  # A time limit was exceeded. The phase "client" is give_up_after.
  class TimeoutError < NetworkError
    def phase = data[:phase]
  end

  # The server answered with a status other than 2xx.
  class HTTPStatusError < NetworkError
    def status = data[:status]
    def response = data[:response]
  end

  # An option of the worker refused the transfer, or the same load failed a short while ago.
  class PolicyError < NetworkError; end

  # The image is not in the cache, or a file cannot be read or written.
  class CacheError < Error; end

  # The content is not a usable image.
  class ContentError < Error; end

  # The worker takes no more requests, or none at present.
  class LifecycleError < Error; end

  # The worker ended before it answered, or did not start. `lost` has the URLs of all loads that ended with it.
  class WorkerExited < LifecycleError
    def exit_status = data[:exit_status]
    def log = data[:log]
    def lost = data[:lost]
  end

  # `close` or `shutdown` was called.
  class ClosedError < LifecycleError
    def initialize(message = "this ImageWorker is closed", kind: "closed", **data) = super
  end

  # The worker does not speak the protocol of this client.
  class IncompatibleWorkerError < LifecycleError; end

  KINDS = {
    RequestError => %w[parseError invalidRequest methodNotFound],
    InvalidParamsError => %w[invalidParams],
    InternalError => %w[internal],
    CancelledByRequest => %w[cancelled],
    TransportError => %w[resolve connect tls truncated network],
    TimeoutError => %w[timeout],
    HTTPStatusError => %w[http],
    PolicyError => %w[redirects tooLarge blockedAddress recentlyFailed robots],
    CacheError => %w[notCached diskFull io],
    ContentError => %w[notAnImage unsupportedFormat corrupt tooManyPixels decoderCrashed decodeTimeout digestMismatch unwanted],
    LifecycleError => %w[shuttingDown overloaded]
  }.freeze
  CLASSES = KINDS.flat_map { |family, kinds| kinds.map { |kind| [kind, family] } }.to_h.freeze
  FAMILIES = { 2 => NetworkError, 3 => CacheError, 4 => ContentError, 5 => LifecycleError }.freeze

  # Names: snake case here, camel case in the protocol

  def self.snake(name) = name.gsub(/([a-z\d])([A-Z])/, '\1_\2').downcase.to_sym
  def self.camel(name) = name.to_s.gsub(/_(\w)/) { $1.upcase }

  # Parameters of each method, by their names in the protocol.
  PARAMS = {
    "initialize" => %w[protocolVersion client options formats],
    "load" => %w[url file key priority group slot headers cache store deliver saveTo validate events timeoutMs deadlineMs retries
                 maxBytes retryFailed response digest want transform placeholder facts isolate outputs],
    "prefetch" => %w[urls priority group headers want transform events],
    "probe" => %w[url key priority group slot headers cache timeoutMs deadlineMs retries retryFailed],
    "process" => %w[file data priority group slot deadlineMs maxBytes want validate placeholder facts isolate outputs],
    "cancel" => %w[id url group slot all],
    "prioritize" => %w[id url group slot priority],
    "pause" => [], "resume" => [], "stats" => [], "metrics" => [],
    "query" => %w[url key file transform],
    "store" => %w[url key path data deliver],
    "clear" => %w[tier url key file prefix host olderThanSeconds expired failures],
    "release" => %w[path all unused],
    "configure" => %w[memoryLimit diskLimit maxAgeMs maxConcurrent maxPerHost maxConnectionsPerHost rate maxRedirects maxQueued
                      order timeoutMs connectTimeoutMs minRate deadlineMs retries failedTtlMs maxBytes maxPixels
                      decodeTimeoutMs minFree verify resolver network proxy userAgent header insecure keyIgnoreQuery events
                      eof exitStatus logLevel logFormat],
    "trace" => %w[action path limit],
    "shutdown" => %w[mode]
  }.freeze

  # Members whose own members have names of the program: they are sent as they are.
  VERBATIM = %w[headers outputs].freeze

  # A value with the names of the protocol. A member that is nil is left out, except in options.
  def self.wire(value, keep_nil: false)
    case value
    when Hash
      value.each_with_object({}) do |(name, each), all|
        next if each.nil? && !keep_nil
        key = name.is_a?(Symbol) ? camel(name) : name.to_s
        by_name = VERBATIM.include?(key) && each.is_a?(Hash)
        all[key] = by_name ? each.to_h { |own, part| [own.to_s, wire(part)] } : wire(each, keep_nil: key == "options")
      end
    when Array then value.map { |each| wire(each) }
    else value
    end
  end

  # Results

  # A Struct with members of the protocol, in snake case. nil: the worker has left the member out.
  def self.record(*names, **nested)
    members = names.to_h { |name| [name, snake(name)] }.freeze
    Struct.new(*members.values, keyword_init: true).tap do |type|
      type.const_set(:WIRE, members)
      type.const_set(:NESTED, nested.freeze)
    end
  end

  # A value of this type: a record, [type] for a list, { String => type } for values by name, :bytes for base64.
  def self.read(type, value)
    case type
    when Array then value.map { |each| read(type.first, each) }
    when Hash then value.transform_values { |each| read(type[String], each) }
    when :bytes then value.unpack1("m")
    when Class
      known = value.slice(*type::WIRE.keys)
      type.new(**known.to_h { |name, each| [type::WIRE[name], read(type::NESTED[name.to_sym], each)] }).freeze
    else value
    end
  end

  Timing = record(*%w[queuedMs lookupMs waitMs dnsMs connectMs tlsMs requestMs bodyMs storeMs decodeWaitMs decodeMs deliverMs
                      firstByteMs totalMs])
  Placeholder = record("thumbhash", "color")
  Container = record("hasAlpha", "colorSpace", "bitDepth", "hasGPS", "c2pa")
  EXIF = record(*%w[orientation dateTimeOriginal make model lensModel exposureTime fNumber iso focalLength focalLengthIn35mm
                    artist copyright])
  Position = record("latitude", "longitude", "altitude")
  Size = record("width", "height")
  OutputFile = record(*%w[bytes mediaType format width height frames orientation upright quality path data],
                      upright: Size, data: :bytes)
  Pixels = record(*%w[path offset width height stride channels bytes])
  Source = record(*%w[bytes format width height frames orientation upright], upright: Size)
  HTTPResponse = record("status", "headers")
  FACTS = { upright: Size, placeholder: Placeholder, container: Container, exif: EXIF, gps: Position,
            outputs: { String => OutputFile }, timing: Timing }.freeze
  Image = record(*%w[url key cache bytes mediaType format width height path data pixels source outputs placeholder digest
                     perceptualHash container exif gps finalURL frames orientation upright response expiresAt kept damaged hdr
                     attempts timing],
                 **FACTS, data: :bytes, pixels: Pixels, source: Source, response: HTTPResponse)
  ProcessResult = record(*%w[bytes mediaType format width height frames orientation upright placeholder digest perceptualHash
                             container exif gps damaged hdr outputs timing], **FACTS)
  ProbeResult = record(*%w[url key cache bytes received mediaType format width height frames orientation upright finalURL etag
                           lastModified attempts timing], upright: Size, timing: Timing)
  PrefetchError = record("url", "kind", "message")
  PrefetchResult = record(*%w[total downloaded cached failed cancelled bytes errors], errors: [PrefetchError])
  Lease = record("pid")
  QueryResult = record(*%w[memory disk fresh path bytes storedAt expiresAt usedAt uses etag directory variants varying transforms
                           failure failedUntil lease reason], lease: Lease)
  OriginState = record(*%w[origin active waiting window health heldUntil reason])
  FailureExample = record(*%w[url message status phase time])
  StatsResult = record(
    *%w[uptimeMs requests queue origins resolver transfers cache failures memory disk decoders pixels rssBytes],
    requests: record(*%w[received succeeded failed cancelled]),
    queue: record(*%w[waiting active window paused], waiting: record(*%w[lowest low normal high highest])),
    origins: [OriginState],
    resolver: record(*%w[kind names waiting inFlight window lookups queries unanswered]),
    transfers: record(*%w[started succeeded failed bytes]),
    cache: record(*%w[memoryHits diskHits revalidated stale misses bytesSaved]),
    failures: [record(*%w[kind count latest hint], latest: FailureExample)],
    memory: record(*%w[entries bytes limit evicted]),
    disk: record(*%w[entries bytes limit evicted evictedFor], evictedFor: record(*%w[limit freeSpace diskFull])),
    decoders: record(*%w[running decoded failed crashed timedOut sandbox]),
    pixels: record("regions", "bytes")
  )
  InitializeResult = record(
    *%w[server protocolVersion methods events formats sandbox limits cache],
    server: record("name", "version"), formats: record("decode", "encode", "libraries"), cache: record("directory", "namespace")
  )
  PauseResult = record("paused")
  RESULTS = {
    "initialize" => InitializeResult, "load" => Image, "prefetch" => PrefetchResult, "probe" => ProbeResult,
    "process" => ProcessResult, "cancel" => record("cancelled"), "prioritize" => record("changed"), "pause" => PauseResult,
    "resume" => PauseResult, "query" => QueryResult, "store" => Image, "clear" => record("removed", "bytes"),
    "release" => record("released"), "stats" => StatsResult, "metrics" => record("contentType", "text"),
    "configure" => record(*PARAMS["configure"]), "trace" => record(*%w[path limit events bytes dropped full])
  }.freeze

  # An event of a request: its name, and its members by symbols in snake case.
  Event = Struct.new(:name, :params)

  # The outcome of a load of load_all: either image or error is nil.
  Outcome = Struct.new(:url, :index, :image, :error)

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A request that has been sent. `id` is its id in the protocol, for `cancel` and `prioritize`.
  class Call
    attr_reader :id, :urls, :outcome
    attr_accessor :refusal

    def initialize(life, id, method, params, finished, on_event)
      @life, @id, @method, @finished, @on_event = life, id, method, finished, on_event
      @urls = [params["url"], *params["urls"]].compact.map { |item| item.is_a?(Hash) ? item["url"] : item }
      @events = []
      @arrived = ConditionVariable.new
    end

    # Waits for the result. Meanwhile the block of the call gets the events, on this thread.
    def value(deadline: nil)
      @life.wait(self, deadline) { |event| @on_event.call(event) }
      raise @outcome if @outcome.is_a?(Error)
      raise Error.of(@outcome["error"] || {}) unless @outcome.key?("result")
      ImageWorker.read(RESULTS[@method], @outcome["result"])
    ensure
      @life.abandon(self) unless @outcome
    end

    # The worker answers with the error cancelled, unless the request is done.
    def cancel = @life.tell("cancel", "id" => @id)

    # The following are called with the lock of the life.

    def add(event)
      return unless @on_event
      @events << event
      @arrived.broadcast
    end

    def end_with(outcome)
      @outcome = outcome
      @arrived.broadcast
      @finished&.push(self)
    end

    # The next event; nil if the request has ended.
    def next_event(lock, deadline)
      while @events.empty? && @outcome.nil?
        left = deadline && deadline - ImageWorker.now
        raise TimeoutError.new("no answer in time", kind: "timeout", phase: "client", url: urls.first) if left && left <= 0
        @arrived.wait(lock, left)
      end
      @events.shift
    end
  end

  # One worker process from its start to its end. Threads: one writes, one reads and waits for the end, one reads the log.
  class Life
    ALL = {}.compare_by_identity
    attr_reader :pid, :failure

    def initialize(command, options, client)
      @client = client
      @lock = Mutex.new
      @calls = {}
      @last_id = @asked_id = 0
      @log = []
      @outgoing = Thread::Queue.new
      @pipes = []
      ALL[self] = true # Before there are pipes: another thread may fork.
      3.times { @pipes.concat(IO.pipe(binmode: true)) }
      child_in, @input, @output, child_out, @errors, child_err = @pipes
      @input.sync = true
      request = { protocol_version: PROTOCOL_VERSION, client: { name: "imageworker.rb", version: VERSION }, options: options }
      @greeting = submit("initialize", ImageWorker.wire(request))
      # In a process group of its own, Ctrl-C reaches only the program.
      @pid = Process.spawn(*command, in: child_in, out: child_out, err: child_err, pgroup: true)
      [child_in, child_out, child_err].each(&:close)
      Thread.new { write }
      @logger = Thread.new { read_log }
      @reader = Thread.new { read }
    rescue StandardError
      close_pipes
      raise
    end

    # Waits for the worker's answer to initialize. Raises an error if the worker cannot be used.
    def ready(deadline = nil)
      wait(@greeting, deadline)
      failed(nil) if @failure
      ImageWorker.read(InitializeResult, @greeting.outcome["result"])
    end

    def submit(method, params, finished: nil, on_event: nil)
      @lock.synchronize do
        failed(params["url"]) if @failure
        id = @last_id += 1
        @outgoing << encode(id: id, method: method, params: params)
        @calls[id] = Call.new(self, id, method, params, finished, on_event)
      end
    rescue ClosedQueueError
      raise ClosedError
    end

    # Sends a request whose answer is ignored.
    def tell(method, params)
      @lock.synchronize { @outgoing << encode(id: @last_id += 1, method: method, params: params) }
    rescue ClosedQueueError
      nil
    end

    def wait(call, deadline)
      while (event = @lock.synchronize { call.next_event(@lock, deadline) })
        yield event
      end
    end

    # The program does not wait for this call any more.
    def abandon(call)
      tell("cancel", "id" => call.id) if @lock.synchronize { @calls.delete(call.id) }
    end

    # Ends the process in steps of `grace` seconds: close the input, SIGTERM, SIGKILL. nil waits without a limit.
    def finish(grace)
      @outgoing.close
      ["TERM", "KILL", nil].each do |signal|
        break if @reader.join(signal && grace)
        kill(signal)
      end
    end

    # In a forked child: closes its copies of the pipes. The threads that had the lock are gone.
    def leave_to_parent
      @lock = Mutex.new
      @outgoing = Thread::Queue.new.close
      close_pipes
      end_calls(WorkerExited.new("the worker belongs to the parent", kind: "workerExited", retryable: true, log: [], lost: []))
    end

    private

    def failed(url) = raise(@failure.class.new(@failure.message, **@failure.data, url: url))

    def encode(request)
      line = JSON.generate(request, max_nesting: 0)
      return "#{line}\n" if @max_line.nil? || line.bytesize <= @max_line
      raise RequestError.new("the request has #{line.bytesize} bytes, more than --max-line (#{@max_line})",
                             code: -32_600, kind: "invalidRequest", url: request[:params]["url"])
    rescue JSON::GeneratorError, EncodingError => error
      raise InvalidParamsError.new("texts must be valid UTF-8, and numbers finite: #{error.message.scrub[0, 80]}",
                                   code: -32_602, kind: "invalidParams")
    end

    def write
      while (lines = @outgoing.pop)
        lines << @outgoing.pop while lines.bytesize < 65_536 && !@outgoing.empty?
        @input.write(lines)
      end
      @input.close
    rescue SystemCallError, IOError
      kill("KILL") # A worker that does not read cannot answer.
    end

    def read
      @output.each_line { |line| receive(line) }
      kill("KILL") # Without output it cannot answer.
      @is_dying = true
      status = Process.wait2(@pid).last
      ended(status.signaled? ? "SIG#{Signal.signame(status.termsig)}" : status.exitstatus)
    rescue Errno::ECHILD # The program has waited for all of its children.
      ended("unknown")
    end

    def read_log
      @errors.each_line { |line| note(line.chomp.force_encoding("UTF-8").scrub) }
    rescue IOError # Closed by the reader: another process had the pipe.
      nil
    end

    # The process and what it has started. Once the reader waits for it, its number may be in use again.
    def kill(signal)
      Process.kill(signal, -@pid) if signal && !@is_dying
    rescue Errno::ESRCH
      nil
    end

    def ended(status)
      @logger.join(1)
      @outgoing.close
      lost = @lock.synchronize { @calls.values }.flat_map(&:urls)
      failure = @client.died(status, @log.dup, lost, @misfit)
      @lock.synchronize { end_calls(failure) }
      close_pipes
      @client.callback(@client.on_exit, failure)
    end

    def end_calls(failure)
      @failure = failure
      @calls.each_value { |call| call.end_with(failure.class.new(failure.message, **failure.data, url: call.urls.first)) }
      @calls.clear
    end

    def close_pipes
      ALL.delete(self)
      @pipes.each(&:close)
    end

    def note(line)
      @log << line
      @log.shift if @log.length > 20
      @client.callback(@client.on_log, line)
    end

    def receive(line)
      message = JSON.parse(line, max_nesting: false)
      raise TypeError unless message.is_a?(Hash)
      return receive_event(message["method"], message["params"]) if message.key?("method")
      message["id"] ? receive_answer(message) : ask_whose(message["error"] || {})
    rescue StandardError
      note("the worker wrote a line that is not a message: #{line[0, 40].inspect}")
    end

    def receive_event(name, params)
      event = Event.new(name, params.transform_keys { |member| ImageWorker.snake(member) })
      @lock.synchronize { @calls[params["id"]]&.add(event) }
    end

    def receive_answer(message)
      return greet(message) if message["id"] == @greeting.id
      @client.answered
      call = @lock.synchronize { @calls.delete(message["id"]) }
      if call
        message["error"] = call.refusal if call.refusal && message.dig("error", "code") == -32_600
        @lock.synchronize { call.end_with(message) }
      elsif (path = message.dig("result", "pixels", "path")) # Of an abandoned call. Nobody else would release them.
        tell("release", "path" => path, "unused" => true)
      end
    end

    # The answer to initialize. If it is an error or names another version, no other answer can be trusted.
    def greet(message)
      result, error = message.values_at("result", "error")
      if result && result["protocolVersion"] == PROTOCOL_VERSION
        @max_line = result["limits"]["maxLine"]
        @lock.synchronize { @calls.delete(message["id"]).end_with(message) }
      else
        reason = result ? "speaks #{result["protocolVersion"]}" : "answers: #{error && error["message"]}"
        @misfit = "this client speaks protocol version #{PROTOCOL_VERSION}, and the worker #{reason}"
        kill("KILL")
      end
    end

    # The worker could not read a line, such as one with two equal names in an object. To find its call, all ids are sent
    # again without a method: the worker answers the id that it does not know, and refuses the others with data.id.
    def ask_whose(refusal)
      return if refusal.dig("data", "id")
      note("the worker refused a line: #{refusal["message"]}")
      @lock.synchronize do
        @calls.each do |id, call|
          call.refusal = refusal
          @outgoing << +"{\"id\":#{id}}\n" if id > @asked_id
        end
        @asked_id = @last_id
      end
    end
  end

  # The worker

  # Exit statuses after which a restart would fail again: an invalid option, an unusable cookie file or cache directory.
  HOPELESS = [64, 66, 73].freeze
  MISSING = [Errno::ENOENT, Errno::EACCES].freeze
  WITH_DEADLINE = %w[load probe process].freeze
  LATE = 10
  LOAD_EVENTS = %w[started progress retrying cached].freeze

  attr_reader :on_log, :on_exit

  # Options of the worker are keywords: --cache-dir is cache_dir, --timeout 5s is timeout_ms: 5000.
  def initialize(binary: nil, arguments: [], on_log: nil, on_exit: nil, max_restarts: 5, longest_pause_ms: 10_000, **options)
    @binary, @on_log, @on_exit, @max_restarts = binary, on_log, on_exit, max_restarts
    @longest_pause = longest_pause_ms / 1000.0
    @flags = options.flat_map { |name, value| self.class.flags(name.to_s, value) } + arguments
    @deadline_ms = options[:deadline_ms]
    @configured = {}
    @closed = @has_run = false
    leave_to_parent
    self.class.instances[self] = true
  end

  # The result of initialize. Starts the worker if none runs.
  def ready = running(nil).ready

  def pid = @life&.pid

  # Sends a request and does not wait: Call#value does. `finished` is a queue that gets the call when it has ended.
  def submit(method, finished: nil, deadline: nil, **params, &on_event)
    method = method.to_s
    wire = prepare(method, params, on_event)
    life = running(deadline)
    life.ready(deadline)
    life.submit(method, wire, finished: finished, on_event: on_event)
  end

  # Sends a request and waits for its result, at most `give_up_after` seconds: then it is cancelled, with TimeoutError.
  # The default is the deadline of the request and LATE seconds more: a worker that is stopped answers nothing.
  def call(method, give_up_after: nil, **params, &on_event)
    give_up_after ||= late_after(method.to_s, params)
    deadline = give_up_after && self.class.now + give_up_after
    submit(method, deadline: deadline, **params, &on_event).value(deadline: deadline)
  end

  def load(url, **params, &on_event) = call("load", url: url, **params, &on_event)

  # Caches the results of transforms, but not the file. `file`: as for process; an open file needs key:.
  def load_file(file, **params) = call("load", file: file, **params)

  def probe(url, **params) = call("probe", url: url, **params)

  # `file`: a File or another object with a descriptor, a path, { root:, path: }, or nil with data: (bytes).
  def process(file = nil, **params) = call("process", file: file, **params)

  def prefetch(urls, **params, &on_event) = call("prefetch", urls: urls.to_a, **params, &on_event)

  def cancel(**target) = call("cancel", **target)

  def prioritize(**target) = call("prioritize", **target)

  def pause = call("pause")

  def resume = call("resume")

  def query(**target) = call("query", **target)

  # `data` are the bytes of the image.
  def store(**content) = call("store", **content)

  def clear(**filter) = call("clear", **filter)

  # Takes an image with pixels, or path: or all: true.
  def release(image = nil, **target) = call("release", **(image ? { path: image.pixels.path } : {}), **target)

  def stats = call("stats")

  def metrics = call("metrics")

  # Changes options. A worker that is started later gets them, too.
  def configure(**options)
    call("configure", **options).tap { @lock.synchronize { @configured = { **@configured, **options } } }
  end

  def trace(**params) = call("trace", **params)

  def start_trace(path, **params) = trace(action: "start", path: path, **params)

  def stop_trace = trace(action: "stop")

  # The pixels of a load with deliver: "pixels", as a binary string. They are released.
  def take_pixels(image)
    File.binread(image.pixels.path, image.pixels.bytes, image.pixels.offset)
  ensure
    release(image, unused: true)
  end

  # Loads many images, and yields an Outcome for each in the order in which the loads end. An entry is a URL, or a hash
  # with url: and parameters of its own. If the block leaves the loop, the pending loads are cancelled.
  def load_all(entries, max_in_flight: 1000, **params)
    return to_enum(__method__, entries, max_in_flight: max_in_flight, **params) unless block_given?
    finished, pending = Thread::Queue.new, {}.compare_by_identity
    take = lambda do
      call = finished.pop
      outcome = pending.delete(call)
      begin
        outcome.image = call.value
      rescue Error => error
        outcome.error = error
      end
      yield outcome
    end
    entries.each_with_index do |entry, index|
      take.call while pending.size >= max_in_flight
      own = entry.is_a?(Hash) ? entry : { url: entry }
      begin
        pending[submit("load", finished: finished, **params, **own)] = Outcome.new(own[:url].to_s, index)
      rescue Error => error
        raise if error.is_a?(LifecycleError) && !error.retryable
        yield Outcome.new(own[:url].to_s, index, nil, error)
      end
    end
    take.call until pending.empty?
  ensure
    pending&.each_key(&:cancel)
  end

  # Finishes (drain) or cancels the accepted requests, and ends the worker.
  def shutdown(mode: "drain", **options)
    raise ArgumentError, "mode must be drain or cancel" unless %w[drain cancel].include?(mode)
    close(drain: mode == "drain", **options)
  end

  # Ends the worker: closes its input, waits `grace` seconds, sends SIGTERM, waits, and sends SIGKILL.
  def close(drain: false, grace: drain ? nil : 5)
    life = @lock.synchronize do
      @closed = true
      @changed.broadcast
      @life
    end
    return if life.nil? || life.failure || @owner != Process.pid
    life.tell("shutdown", "mode" => drain ? "drain" : "cancel")
    life.finish(grace)
  end

  # The following methods are for Life and for a forked child.

  def answered = @deaths = 0

  # Counts the end of a worker, and makes its error. With it, no worker is started if that would fail again.
  def died(status, log, lost, misfit = nil, missing: false)
    @lock.synchronize do
      @deaths += 1
      @died_at = self.class.now
      @has_run ||= !status.nil?
      hopeless = misfit || HOPELESS.include?(status) || (missing && !@has_run)
      retryable = !@closed && !hopeless && @max_restarts.positive?
      text = status.nil? ? "the worker did not start" : "the worker ended (status #{status})"
      text += ": #{log.last}" unless log.empty?
      type, kind = misfit ? [IncompatibleWorkerError, "incompatible"] : [WorkerExited, "workerExited"]
      @failure = type.new(misfit || text, kind: kind, retryable: retryable, exit_status: status, log: log, lost: lost)
    end
  end

  # The error of a handler ends nothing.
  def callback(handler, value)
    handler&.call(value)
  rescue StandardError => error
    warn("a handler of ImageWorker failed: #{error.full_message}")
  end

  # A new state, without a worker. The threads that may have had the lock are gone.
  def leave_to_parent
    @owner = Process.pid
    @lock, @changed = Mutex.new, ConditionVariable.new
    @life = @failure = nil
    @deaths = 0
  end

  @instances = ObjectSpace::WeakMap.new
  class << self
    attr_reader :instances

    # In a forked child: closes the copies of the pipes. Otherwise the worker would not notice the end of the program.
    def after_fork
      Life::ALL.keys.each(&:leave_to_parent)
      instances.keys.each(&:leave_to_parent)
    end

    def flags(name, value)
      flag = "--#{name.delete_suffix("_ms").tr("_", "-")}"
      case value
      when nil, false then []
      when true then [flag]
      when Array then name == "events" ? ["#{flag}=#{value.join(",")}"] : value.map { |each| "#{flag}=#{each}" }
      else ["#{flag}=#{value}#{"ms" if name.end_with?("_ms")}"]
      end
    end

    # The argument, else $IMAGEWORKER, else the release build of the source tree, else the PATH.
    def find_worker(binary = nil)
      chosen = [binary, ENV["IMAGEWORKER"]].find { |each| each && !each.empty? }
      return chosen if chosen
      folders = [File.expand_path("../../.build/release", __dir__), *ENV.fetch("PATH", "").split(":")]
      found = folders.map { |folder| File.join(folder, "imageworker") }.find { |each| File.file?(each) && File.executable?(each) }
      advice = "put a release of it on the PATH, build it (swift build -c release), or set IMAGEWORKER to its path"
      found or raise Errno::ENOENT, "imageworker was not found: #{advice}"
    end
  end

  # Process.fork, Kernel#fork and IO.popen("-") call this (Ruby 3.1).
  module ForkHook
    def _fork = super.tap { |pid| ImageWorker.after_fork if pid.zero? }
  end
  Process.singleton_class.prepend(ForkHook)

  private

  def prepare(method, params, on_event)
    known = PARAMS.fetch(method) { raise ArgumentError, "unknown method: #{method}" }
    params = { **params, **content_of(params[:file], known) } if params[:file]
    wire = self.class.wire(params, keep_nil: method == "configure")
    unknown = wire.keys - known
    raise ArgumentError, "unknown parameter of #{method}: #{unknown.join(", ")}" unless unknown.empty?
    outputs = wire["outputs"].is_a?(Hash) ? wire["outputs"].values.grep(Hash) : []
    [wire, *outputs].each { |each| each["saveTo"] &&= File.expand_path(each["saveTo"]) }
    wire["path"] &&= File.expand_path(wire["path"])
    wire["data"] &&= [wire["data"]].pack("m0")
    with_events = on_event && !params.key?(:events) && known.include?("events")
    wire["events"] = method == "load" ? LOAD_EVENTS : ["progress"] if with_events
    wire
  end

  # The parameter `file`, or `data` for an IO without a descriptor, such as a StringIO.
  def content_of(file, known)
    if (fd = file.respond_to?(:fileno) && file.fileno)
      file.flush if file.respond_to?(:flush) # The worker reads the file, not the buffer.
      return { file: { fd: fd } }
    end
    path = file.respond_to?(:to_path) ? file.to_path : file
    return { file: path.is_a?(String) ? { path: File.expand_path(path) } : file } unless path.respond_to?(:read)
    raise ArgumentError, "file must have a descriptor or a path, unlike a #{file.class}" unless known.include?("data")
    file.rewind if file.respond_to?(:rewind)
    { file: nil, data: file.read }
  end

  # Seconds after which a call has no answer although its deadline is over. nil: it has none.
  def late_after(method, params)
    given = [params, @configured, { deadline_ms: @deadline_ms }].filter_map { |each| each[:deadline_ms] }.first
    given / 1000.0 + LATE if WITH_DEADLINE.include?(method) && given.is_a?(Numeric) && given.positive?
  end

  # The worker that runs, or another one after the pause.
  def running(deadline)
    self.class.after_fork unless @owner == Process.pid # Process.daemon does not call _fork.
    @lock.synchronize do
      loop do
        raise ClosedError if @closed
        return @life if @life && @life.failure.nil?
        left = pause_left
        late = deadline && self.class.now + left > deadline
        raise @failure.class.new(@failure.message, **@failure.data) if late
        break if left <= 0
        @changed.wait(@lock, left)
      end
      @life = Life.new([self.class.find_worker(@binary), *@flags], @configured, self)
    end
  rescue SystemCallError => error
    raise died(nil, [error.message], [], missing: MISSING.include?(error.class))
  end

  # Seconds until the next start. Raises if there will be none, or if too many workers died and it is not due yet.
  def pause_left
    return 0 unless @failure
    given_up = @deaths > @max_restarts
    pause = given_up ? @longest_pause : [0.1 * 2**(@deaths - 1), @longest_pause].min
    left = @died_at + pause - self.class.now
    raise @failure.class.new(@failure.message, **@failure.data) if !@failure.retryable || (given_up && left.positive?)
    [left, 0].max
  end
end
