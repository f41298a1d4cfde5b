package wire

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// TestScriptsOfServices sends common script replacements of CL.THROTTLE, native and interpreted: all must
// return the same.
func TestScriptsOfServices(t *testing.T) {
	t.Parallel()
	const five, one = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", ":0\r\n"
	scripts := []struct{ source, want string }{
		{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", five},
		{"return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])", five},
		{"return redis.call(\"cl.throttle\",KEYS[1],ARGV[1],ARGV[2],ARGV[3],ARGV[4]);", five},
		{"\n  return  redis.call( 'CL.THROTTLE' , KEYS[1] , unpack(ARGV) )\n", five},
		{"return redis.call('cl.throttle', KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))", five},
		{"return redis.call('CL.THROTTLE', KEYS[1], '15', '30', '60', '1')", five},
		{"return redis.call('cl.throttle', KEYS[1], 15, 30, 60)", five},
		{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[1]", one},
		{"return redis.pcall('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", five},
		{"-- limits\nlocal reply = redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])\nreturn reply", five},
		{"local reply = redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) return reply[1]", one},
		{"local out = {} for i, key in ipairs(KEYS) do out[i] = redis.call('cl.throttle', key, unpack(ARGV))[3] end return out", "*1\r\n:15\r\n"},
		{"return cjson.encode(redis.call('cl.throttle', KEYS[1], unpack(ARGV)))", "$14\r\n[0,16,15,-1,2]\r\n"},
	}
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		nc := startServer(t).Dial(t)
		for i, s := range scripts {
			harness.Exchange(t, nc, string(resptest.Append(nil, "EVAL", s.source, "1", fmt.Sprint("k", i), "15", "30", "60", "1")), s.want)
			harness.Exchange(t, nc, string(resptest.Append(nil, "EVALSHA", strings.TrimSpace(ask(t, nc, string(resptest.Append(nil, "SCRIPT", "LOAD", s.source)))),
				"1", fmt.Sprint("other", i), "15", "30", "60", "1")), s.want)
		}
		harness.Exchange(t, nc, "EVAL \"return redis.call('cl.throttle', 'undeclared', 15, 30, 60)\" 0\r\n", "-ERR ")
	})
}

// TestScriptByHash runs scripts by hash and, if unknown, by source, as client libraries do. The limit is
// exact.
func TestScriptByHash(t *testing.T) {
	p := harness.StartServer(t)
	client := harness.GoRedis(t, redis.Options{Addr: p.Addr})
	for i, source := range []string{
		"return redis.call('cl.throttle', KEYS[1], ARGV[1], 1, 3600)[1]",
		"local limited = redis.call('cl.throttle', KEYS[1], ARGV[1], 1, 3600)[1] return limited",
	} {
		script := redis.NewScript(source)
		if err := script.EvalSha(t.Context(), client, []string{"k"}, 1).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Fatalf("an unknown script got %v", err)
		}
		const workers, calls, limit = 8, 100, 300
		var mu sync.Mutex // guards allowed
		allowed := 0
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range calls {
					limited, err := script.Run(t.Context(), client, []string{fmt.Sprint("k", i)}, limit-1).Int()
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					allowed += 1 - limited
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if allowed != limit {
			t.Errorf("%q: %d calls were allowed, want %d", source, allowed, limit)
		}
		if exists, err := script.Exists(t.Context(), client).Result(); err != nil || !exists[0] {
			t.Errorf("SCRIPT EXISTS: got %v, %v", exists, err)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

// TestScriptIsAtomic runs a script on two keys beside single calls of one of them. The replies must match a
// serial order: no command inside a script, and each number once.
func TestScriptIsAtomic(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		const scripters, hammerers, runs, calls, most = 2, 2, 60, 3000, 1_000_000
		const script = `local before = redis.call('get', KEYS[1])
			local n = 0
			for i = 1, 20000 do n = n + i end
			if redis.call('get', KEYS[1]) ~= before then return redis.error_reply('ERR another was in between') end
			local a = redis.call('cl.throttle', KEYS[1], ARGV[1], 1, 3600)
			for i = 1, 2000 do n = n + i end
			local b = redis.call('cl.throttle', KEYS[2], ARGV[1], 1, 3600)
			return {a[3], b[3]}`
		p := startServer(t, "--lua-time-limit", "1h") // independent of the machine's speed
		var mu sync.Mutex                             // guards seenA and seenB
		var seenA, seenB []int
		var wg sync.WaitGroup
		for range scripters {
			nc := p.Dial(t)
			wg.Go(func() {
				command := resptest.Append(nil, "EVAL", script, "2", "a", "b", fmt.Sprint(most-1))
				for range runs {
					var a, b int
					reply := ask(t, nc, string(command))
					if _, err := fmt.Sscan(reply, &a, &b); err != nil {
						t.Errorf("a script got %q", reply)
						return
					}
					mu.Lock()
					seenA, seenB = append(seenA, a), append(seenB, b)
					mu.Unlock()
				}
			})
		}
		for range hammerers {
			nc := p.Dial(t)
			wg.Go(func() {
				replies := bufio.NewReader(nc)
				command := resptest.Append(nil, "CL.THROTTLE", "a", fmt.Sprint(most-1), "1", "3600")
				for range calls {
					_, err := nc.Write(command)
					var reply pipelineReply
					if err == nil {
						reply, err = readPipelineReply(replies)
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seenA = append(seenA, int(reply.remaining))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for key, seen := range map[string]struct {
			remaining []int
			want      int
		}{"a": {seenA, scripters*runs + hammerers*calls}, "b": {seenB, scripters * runs}} {
			slices.Sort(seen.remaining)
			if n := len(slices.Compact(seen.remaining)); n != seen.want || seen.remaining[0] != most-seen.want {
				t.Errorf("%s: %d different numbers down to %d, want %d down to %d", key, n, seen.remaining[0], seen.want, most-seen.want)
			}
		}
	})
}

func TestManyScriptsAtOnce(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		racetest.OneAtATime(t)
		const clients = 400
		p := startServer(t, "--lua-time-limit", "1h")
		command := string(resptest.Append(nil, "EVAL", "local s = 0 for i = 1, 1000 do s = s + i end return s + ARGV[1]", "0", "7"))
		var wg sync.WaitGroup
		for range clients {
			nc := p.Dial(t)
			wg.Go(func() { harness.Exchange(t, nc, strings.Repeat(command, 5), strings.Repeat(":500507\r\n", 5)) })
		}
		wg.Wait()
		harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
	})
}

// TestScriptsMemoryIsBounded: many clients run scripts that use the permitted memory.
func TestScriptsMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	racetest.OneAtATime(t)
	const clients, ofOneScript = 32, 16 << 20             // 512 MiB if all ran at once
	p := harness.StartServer(t, "--lua-time-limit", "1h") // memory must stop them, not time
	before := p.RSS(t)
	const script = "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 10000) .. i end"
	want := fmt.Sprintf("-ERR script used more than %d bytes of memory and was ended\r\n", ofOneScript)
	var wg sync.WaitGroup
	for range clients {
		nc := p.Dial(t)
		wg.Go(func() {
			command := string(resptest.Append(nil, "EVAL", script, "0"))
			harness.Exchange(t, nc, command, want)
			harness.Exchange(t, nc, command, want)
		})
	}
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	peak := 0
	p.Eventually(t, "answer all scripts", func() bool {
		peak = max(peak, p.RSS(t))
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	t.Logf("resident: %d MiB before, %d MiB at most", before>>20, peak>>20)
	if racetest.Enabled {
		return // its memory differs
	}
	if most := before + 8*ofOneScript; peak > most {
		t.Errorf("the server grew from %d to %d MiB, want at most %d", before>>20, peak>>20, most>>20)
	}
	p.Eventually(t, "give the memory back", func() bool { return p.RSS(t) <= before+32<<20 })
	_, _ = io.WriteString(p.Dial(t), "QUIT\r\n")
}
