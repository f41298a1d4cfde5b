# frozen_string_literal: true

# Uses the server as users of redis-rb do.

require "connection_pool"
require "digest"
require "json"
require "redis"

SCRIPT = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
DAY_SECONDS = 86_400 # a period so long that no unit leaks during a check
FRESH = [0, 16, 15, -1, 2].freeze # the reply to 15 30 60 for a new key
URL = ENV.fetch("REDIS_URL")

$stdout.sync = true

def say(line)
  puts JSON.generate(line)
end

def check(name)
  yield
  say(check: name, ok: true)
rescue StandardError => e
  $failed = true
  say(check: name, error: "#{e.class}: #{e.message}")
end

def expect(got, want)
  raise "#{got.inspect}, want #{want.inspect}" unless got == want
end

def throttle(redis, key, *limit)
  redis.call("CL.THROTTLE", key, *limit)
end

def fresh(redis, key)
  expect(throttle(redis, key, 15, 30, 60), FRESH)
end

def first_three(replies)
  replies.map { |reply| reply.first(3) }
end

# refused expects an error whose text matches.
def refused(pattern)
  yield
rescue Redis::BaseError, OpenSSL::SSL::SSLError => e
  raise "#{e.message}, want #{pattern.inspect}" unless e.message.match?(pattern)
else
  raise "no error, want #{pattern.inspect}"
end

# once opens a client for one call.
def once(url, **options)
  redis = Redis.new(url: url, **options)
  yield redis
ensure
  redis&.close
end

def pipeline(redis)
  replies = redis.pipelined do |batch|
    100.times { throttle(batch, "pipeline", 49, 1, DAY_SECONDS) }
  end
  expect(first_three(replies), Array.new(100) { |i| [i < 50 ? 0 : 1, 50, [49 - i, 0].max] })
end

def transaction(redis)
  replies = redis.multi do |batch|
    3.times { throttle(batch, "transaction", 1, 1, DAY_SECONDS) }
  end
  expect(first_three(replies), [[0, 2, 1], [0, 2, 0], [1, 2, 0]])
end

# Expects a transaction to abort because another connection wrote its key, and then one to succeed.
def watch(redis)
  exec = -> { redis.multi { |batch| throttle(batch, "watch", 15, 1, DAY_SECONDS) } }
  once(URL) do |other|
    redis.watch("watch") do
      throttle(other, "watch", 15, 1, DAY_SECONDS)
      expect(exec.call, nil)
    end
  end
  redis.watch("watch") { expect(first_three(exec.call), [[0, 16, 14]]) }
end

# Falls back to EVAL if the server does not have the script, as redis-rb's users do.
def evalsha(redis)
  known = %w[evalsha:first evalsha:second].map do |key|
    limit = { keys: [key], argv: [15, 30, 60] }
    expect(redis.evalsha(Digest::SHA1.hexdigest(SCRIPT), **limit), FRESH)
    true
  rescue Redis::CommandError => e
    raise unless e.message.start_with?("NOSCRIPT")

    expect(redis.eval(SCRIPT, **limit), FRESH)
    false
  end
  expect(known, [false, true])
end

# Sends INCREX with each option as an arbitrary command, as redis-rb has no method for it.
def increx(redis)
  now = Time.now
  [
    ["", [1, 1], -1..-1],
    ["BYINT 5 LBOUND 0 UBOUND 10", [6, 5], -1..-1],
    ["BYINT 5 UBOUND 10 EX 1000", [6, 0], -1..-1], # declined, with its expiry
    ["BYINT 5 UBOUND 10 SATURATE EX 1000", [10, 4], 1..1000],
    ["BYINT -50 LBOUND 2 SATURATE PX 9000000 ENX", [2, -8], 1..1000],
    ["BYINT 1 EXAT #{now.to_i + 20_000}", [3, 1], 1001..20_000],
    ["BYINT 1 PXAT #{(now.to_f * 1000).to_i + 40_000_000}", [4, 1], 20_001..40_000],
    ["BYINT 1 PERSIST", [5, 1], -1..-1],
    ["BYINT 1 EX 1000 ENX", [6, 1], 1..1000],
    ["BYFLOAT 0.5 LBOUND 0 UBOUND 7.5", %w[6.5 0.5], 1..1000],
    ["BYFLOAT 10 UBOUND 7.5", %w[6.5 0], 1..1000],
    ["BYFLOAT 10 UBOUND 7.5 SATURATE PX 9000000", %w[7.5 1], 1001..9000]
  ].each do |words, want, seconds|
    expect([words, redis.call("INCREX", "increx", *words.split)], [words, want])
    expect([words, seconds.cover?(redis.ttl("increx"))], [words, true])
  end
end

def pool
  clients = ConnectionPool.new(size: 8) { Redis.new(url: URL) }
  workers = Array.new(8) do
    Thread.new { Array.new(100) { clients.with { |redis| throttle(redis, "pool", 99, 1, DAY_SECONDS).first } } }
  end
  answers = workers.flat_map(&:value)
  clients.shutdown(&:close)
  expect([answers.size, answers.count(0)], [800, 100])
end

def tls
  url = ENV.fetch("REDIS_TLS_URL")
  refused(/certificate verify failed/) { once(url) { |redis| fresh(redis, "tls") } } # only with the system's authorities
  once(url, ssl_params: { ca_file: ENV.fetch("REDIS_CA") }) { |redis| fresh(redis, "tls") }
end

def database(redis)
  fresh(redis, "database")
  once(ENV.fetch("REDIS_DB3_URL")) { |other| fresh(other, "database") } # where the key of the same name is separate
end

def reconnect(redis)
  puts "RESTART"
  expect($stdin.gets, "restarted\n")
  fresh(redis, "reconnect")
end

say(version: Redis::VERSION)
redis = Redis.new(url: URL)
check("url") { expect(redis.ping, "PONG") }
check("tls") { tls }
check("throttle") { fresh(redis, "throttle") }
check("pipeline") { pipeline(redis) }
check("transaction") { transaction(redis) }
check("watch") { watch(redis) }
check("evalsha") { evalsha(redis) }
check("eval") { expect(redis.eval(SCRIPT, keys: ["eval"], argv: [15, 30, 60]), FRESH) }
check("pool") { pool }
check("wrong password") { refused(/WRONGPASS/) { once(URL, password: "not it", &:ping) } }
check("database") { database(redis) }
check("increx") { increx(redis) }
check("reconnect") { reconnect(redis) }
exit($failed ? 1 : 0)
