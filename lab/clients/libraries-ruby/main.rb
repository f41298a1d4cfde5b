# frozen_string_literal: true

# Uses rack-attack on a Redis as its users do, and prints what it saw.

require "active_support"
require "active_support/cache"
require "active_support/notifications"
require "json"
require "rack"
require "rack/attack"
require "rack/attack/version"
require "redis"

URL = ENV.fetch("REDIS_URL")
GONE_URL = ENV.fetch("REDIS_GONE_URL")
DAY = 86_400
POLLS = 3000 # of 20 ms: a minute, which hangs a part on no server

# part prints what a part of the library's work saw; the part adds to it line by line.
def part(name)
  line = { library: "rack-attack", version: Rack::Attack::VERSION, part: name, saw: [] }
  begin
    yield line[:saw]
  rescue StandardError => e
    line[:error] = "#{e.class}: #{e.message}"
  end
  puts JSON.generate(line)
end

# again makes calls until one is limited, and then until one is allowed: the window has passed.
def again(saw)
  { false => "limited", true => "allowed after the window" }.each do |want, text|
    polls = 0
    until yield == want
      raise "not #{text}" if (polls += 1) > POLLS

      sleep 0.02 if want
    end
    saw << text
  end
end

# status sends a request through the middleware, with this path and address.
def status(path, address = "192.0.2.1")
  @app ||= Rack::MockRequest.new(Rack::Attack.new(->(_) { [200, {}, []] }))
  @app.get(path, "REMOTE_ADDR" => address).status
end

def configure(store)
  Rack::Attack.clear_configuration
  Rack::Attack.cache.store = store
  Rack::Attack.throttle("day", limit: 3, period: DAY) { |r| r.ip if r.path == "/" }
  Rack::Attack.throttle("second", limit: 1, period: 1) { |r| r.ip if r.path == "/second" }
  Rack::Attack.blocklist("fail2ban") do |r|
    Rack::Attack::Fail2Ban.filter(r.ip, maxretry: 2, findtime: DAY, bantime: DAY) { r.path == "/login" }
  end
end

def work(saw, store, address)
  configure(store)
  4.times { saw << "throttle: #{status('/', address)}" }
  again(saw) { { 200 => true, 429 => false }.fetch(status("/second", address)) }
  3.times { saw << "fail2ban: #{status('/login', address)}" }
  saw << "banned: #{status('/else', address)}"
  Rack::Attack::Fail2Ban.reset(address, findtime: DAY)
  Rack::Attack.reset!
  saw << "after reset: #{status('/', address)}"
end

part("with redis-rb") { |saw| work(saw, Redis.new(url: URL), "192.0.2.1") }

part("with ActiveSupport's RedisCacheStore") do |saw|
  work(saw, ActiveSupport::Cache::RedisCacheStore.new(url: URL), "192.0.2.2")
end

part("gone") do |saw|
  [Redis.new(url: GONE_URL, reconnect_attempts: 0),
   ActiveSupport::Cache::RedisCacheStore.new(url: GONE_URL, reconnect_attempts: 0)].each do |store|
    configure(store)
    saw << status("/").to_s
  rescue StandardError
    saw << "an error"
  end
end
