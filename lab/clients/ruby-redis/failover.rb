# frozen_string_literal: true

# Calls the leader of a pair through redis-rb, which follows Sentinel. See lab/clients/README.md.

require "json"
require "redis"

INTERVAL = Integer(ENV.fetch("INTERVAL_MS")) / 1000.0
INCR = ENV.fetch("CALL") == "incr"

$stdout.sync = true

def open_client(sentinels, name, password)
  # sentinel: begin
  # sentinels is [{ host: "10.0.0.1", port: 26379 }, ...], and name is "mymaster"
  redis = Redis.new(url: "redis://#{name}", sentinels: sentinels, role: :master, password: password,
                    timeout: 3, reconnect_attempts: 0)
  # sentinel: end
  redis
end

# Practically nothing leaks: a burst of 200,000, and five hours a unit.
def throttle(redis, key)
  INCR ? [0, redis.incr(key)] : redis.call("CL.THROTTLE", key, 199_999, 1, 18_000)
end

def allowed?(redis, key)
  # sentinel: begin
  begin
    reply = throttle(redis, key)
  rescue Redis::CommandError => e
    redis.close if e.message.start_with?("READONLY") # the next call asks Sentinel
    raise
  end
  # sentinel: end
  reply[0].zero?
end

# Refused and unsent calls were not charged.
def kind(error)
  case error
  when Redis::CommandError
    error.message.match?(/\A(READONLY|LOADING|MASTERDOWN|NOREPLICAS)/) ? "refused" : "unknown"
  when Redis::CannotConnectError then "unsent"
  else
    error.message.match?(/role mismatch|via Sentinel/) ? "unsent" : "unknown"
  end
end

def now_ms
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
end

sentinels = ENV.fetch("SENTINELS").split(",").map do |address|
  host, port = address.split(":")
  { host: host, port: Integer(port) }
end
redis = open_client(sentinels, ENV.fetch("NAME"), ENV.fetch("PASSWORD"))

keys = Queue.new
Thread.new do
  $stdin.each_line(chomp: true) { |line| keys << line }
  keys << nil
end

last = now_ms # success
key = keys.pop
while key # a section is the time between two lines of standard input
  section = { library: "redis-rb", version: Redis::VERSION, key: key }
  counts = { "ok" => 0, "allowed" => 0, "refused" => 0, "unsent" => 0, "unknown" => 0 }
  errors = Hash.new(0)
  longest = 0
  while keys.empty?
    begin
      counts["allowed"] += 1 if allowed?(redis, key)
      counts["ok"] += 1
      now = now_ms
      longest = [longest, now - last].max
      last = now
    rescue Redis::BaseError => e
      counts[kind(e)] += 1
      errors["#{e.class}: #{e.message}"[0, 100]] += 1
    end
    sleep INTERVAL
  end
  key = keys.pop
  since = now_ms - last
  puts JSON.generate(**section, **counts, errors: errors, longest_ms: [longest, since].max, since_ms: since) if key
end
