# frozen_string_literal: true

# What only the Ruby client has: threads, blocks, Timeout and forks. test_ruby_client.py runs it. Each check is a line.

require "net/http"
require "pathname"
require "tempfile"
require "timeout"
require_relative "../../../examples/ruby/imageworker"

ORIGIN = ENV.fetch("ORIGIN")
CACHE = ARGV.fetch(0)

def check(name) = puts("#{yield ? "ok" : "not ok"} #{name}")

def command(name, **members)
  uri = URI("#{ENV.fetch("ORIGIN_CONTROL")}/#{name}?#{URI.encode_www_form(members)}")
  Net::HTTP.get_response(uri).is_a?(Net::HTTPOK)
end

def outcome
  yield
rescue ImageWorker::Error, Timeout::Error => error
  error.is_a?(ImageWorker::Error) ? error.kind : "late"
end

@left = 0
def await_left = command("await", left: @left += 1)

def pipes_of(pid) = Dir.children("/proc/#{pid}/fd").filter_map { |name| File.readlink("/proc/#{pid}/fd/#{name}") rescue nil }.grep(/pipe/)

def in_fork
  reader, writer = IO.pipe
  pid = fork do
    reader.close
    writer.puts(yield)
    writer.close
    exit!(0)
  end
  writer.close
  reader.read.strip.tap { Process.wait(pid) }
end

worker = ImageWorker.new(cache_dir: CACHE)

# Threads, while the worker is killed
kinds = Thread::Queue.new
threads = Array.new(100) do |number|
  Thread.new do
    4.times do |turn|
      width = 20 + turn
      kinds << outcome { worker.load("#{ORIGIN}/image/#{number}.png?width=#{width}").width == width ? "right" : "wrong" }
      (Process.kill("KILL", worker.pid) if number % 50 == 25 && turn == 2) rescue Errno::ESRCH
    end
  end
end
threads.each(&:join)
tally = Array.new(kinds.size) { kinds.pop }.tally
check("100 threads have an outcome for each call: #{tally}") { tally.values.sum == 400 && (tally.keys - %w[right workerExited]).empty? }

# Calls that end early
command("reset")
held = "#{ORIGIN}/image/1.png?hold=never"
check("Timeout cancels") { outcome { Timeout.timeout(0.5) { worker.load("#{held}&x-1") } } == "late" && await_left }
thread = Thread.new { worker.load("#{held}&x-2") }
command("await", gate: "never", held: 1)
thread.kill.join
check("Thread#kill cancels") { await_left }
error = begin
  worker.load("#{held}&x-3") { command("await", gate: "never", held: 1) && raise(ArgumentError, "from the block") }
rescue ArgumentError => error
  error
end
check("an error of the block comes out, and cancels") { error.message == "from the block" && await_left }
stats = nil
worker.load("#{ORIGIN}/image/700.png") { stats ||= worker.stats }
check("a block may call the worker") { stats.requests.received.positive? }
worker.load_all(["#{ORIGIN}/image/701.png", "#{held}&x-4"]) { command("await", gate: "never", held: 1) && break }
check("leaving load_all cancels") { await_left }
refused = [{ colour: 1 }, { transform: { "width" => Float::NAN } }].map { |params| worker.load("data:,", **params) rescue $!.class }
check("wrong parameters are refused") { refused == [ArgumentError, ImageWorker::InvalidParamsError] }

# Forks
pid = worker.pid
pipes = pipes_of(pid)
forks = Array.new(3) { in_fork { [worker.load("#{ORIGIN}/image/1.png").width, worker.pid, (pipes_of("self") & pipes).size].join(" ") } }
forks = forks.map { |line| line.split.map(&:to_i) }
check("a fork has a worker of its own, and no pipe of the parent's") { forks.all? { |width, own, held| width == 32 && own != pid && held.zero? } }
check("the worker of the parent goes on") { worker.load("#{ORIGIN}/image/2.png").width == 32 && worker.pid == pid }
sleeping = fork { sleep }
start = ImageWorker.now
second = ImageWorker.new(cache_dir: CACHE)
second.ready
sleeping_too = fork { sleep }
second.close
check("close does not wait for a fork") { ImageWorker.now - start < 4 }
[sleeping, sleeping_too].each { |child| Process.kill("KILL", child) && Process.wait(child) }
daemon = in_fork do
  own = ImageWorker.new(cache_dir: CACHE)
  own.ready
  before = own.pid
  Process.daemon(true, true)
  "#{own.load("#{ORIGIN}/image/3.png").width} #{own.pid == before}"
end
check("Process.daemon: #{daemon}") { daemon == "32 false" }
check("a program that is executed inherits no pipe") { (IO.popen(%w[ls -l /proc/self/fd], &:read).scan(/pipe:\[\d+\]/) & pipes).empty? }

# A program that waits for all of its children, as a master of Puma or Unicorn does
third = ImageWorker.new(cache_dir: CACHE)
third.ready
reaper = Thread.new { loop { Process.wait(-1) rescue sleep(0.01) } }
call = third.submit(:load, url: "#{held}&x-5")
Process.kill("KILL", third.pid)
check("the end is noticed although another thread waits for all children") { outcome { call.value } == "workerExited" }
check("and another worker starts") { third.load("#{ORIGIN}/image/4.png").width == 32 }
third.close
reaper.kill

# Files
bytes = File.binread(worker.load("#{ORIGIN}/image/5.png").path)
file = Tempfile.new
file.binmode.write(bytes)
file.unlink
outputs = { my_thumb: { transform: { width: 8 }, deliver: "data" } }
check("a temporary file without a name, not flushed") { worker.process(file, outputs: outputs).outputs["my_thumb"].data.start_with?("\x89PNG".b) }
check("a Pathname") { worker.process(Pathname(worker.load("#{ORIGIN}/image/5.png").path)).width == 32 }

require "stringio"
memory = StringIO.new(bytes)
memory.read
check("a StringIO, which has no descriptor") { worker.process(memory).width == 32 }
refused = worker.load_file(memory, key: "memory", transform: { width: 8 }) rescue $!
check("which cannot be loaded") { refused.is_a?(ArgumentError) && refused.message == "file must have a descriptor or a path, unlike a StringIO" }

# A worker that is stopped
ImageWorker.send(:remove_const, :LATE)
ImageWorker::LATE = 0.5
fourth = ImageWorker.new(cache_dir: CACHE, deadline_ms: 500)
fourth.ready
Process.kill("STOP", fourth.pid)
late = [{}, { deadline_ms: 10 }].map { |params| outcome { Timeout.timeout(60) { fourth.process(data: bytes, **params) } } }
check("calls end after their deadline, or that of the worker: #{late}") { late == %w[timeout timeout] }
Process.kill("CONT", fourth.pid)
check("and it goes on") { fourth.process(data: bytes, deadline_ms: 0).width == 32 }
fourth.close

worker.close
check("no thread is left") { Thread.list.size == 1 }
