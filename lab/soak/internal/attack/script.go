package attack

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Endless scripts, and one of some 12 ms of processor time that reads a changing key.
const (
	endless   = "while true do end"
	contended = "redis.call('CL.THROTTLE', KEYS[1], 1000, 1000, 1) local n = 0 " +
		"for i = 1, 200000 do n = n + i end return redis.call('CL.THROTTLE', KEYS[1], 1000, 1000, 1)"
	contendedKey = "contended"
)

// scripts are hard to compile or execute, or many.
func scripts() []Attack {
	return []Attack{
		{Name: "EVAL of 10,000 globals", Pause: 2 * time.Second, Payload: func(r *rand.Rand) Batch { return command("EVAL", manyGlobals(r), "0") }},
		{Name: "SCRIPT LOAD of 10,000 globals", Pause: 2 * time.Second, Payload: func(r *rand.Rand) Batch { return command("SCRIPT", "LOAD", manyGlobals(r)) }},
		{Name: "EXEC of EVAL of 10,000 globals", Pause: 3 * time.Second, Payload: func(r *rand.Rand) Batch {
			script := manyGlobals(r)
			return inExec(2, func(i int) []string { // the first locks all keys
				return [][]string{{"DBSIZE"}, {"EVAL", script, "0"}}[i]
			})
		}},
		{Name: "SCRIPT LOAD flood", Pause: time.Second, Payload: scriptLoads},
		{Name: "endless scripts of 50 connections", Pause: time.Second, Round: endlessScripts},
		{Name: "script whose key others change", Pause: time.Second, Round: contendedScript},
		{Name: "EVALs of closed clients", Pause: time.Second, Round: closedClients},
		{Name: "redis.log flood", Pause: time.Second, Payload: once(func() Batch {
			var b Batch
			for range 100 {
				b.Add("EVAL", "redis.log(redis.LOG_WARNING, string.rep('x', 65000))", "0")
			}
			return b
		})},
		{Name: "gsub of 4 MB", Pause: time.Second, Payload: once(func() Batch {
			return command("EVAL", "return #string.gsub(ARGV[1], '.', '%0%0')", "0", strings.Repeat("x", 4_000_000))
		})},
		{Name: "EVAL with 400,000 arguments", Pause: 2 * time.Second, Payload: once(func() Batch {
			return command(append([]string{"EVAL", "return #ARGV", "0"}, shortWords(400_000)...)...)
		})},
		{Name: "EVAL with 100,000 keys", Pause: 2 * time.Second, Payload: once(func() Batch {
			return command(append([]string{"EVAL", "return #KEYS", "100000"}, numbered("", 100_000)...)...)
		})},
		{Name: "scripts that take up memory", Pause: time.Second, Payload: once(hungryScripts)},
	}
}

// manyGlobals returns a unique script of 63 KB that sets 10,000 globals.
func manyGlobals(random *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	script := fmt.Appendf(make([]byte, 0, 64<<10), "-- %016x\n", random.Uint64())
	for i := range 10_000 {
		script = append(script, 'A'+byte(i/36/36), letters[i/36%36], letters[i%36])
		script = append(script, "=1\n"...)
	}
	return string(script)
}

func scriptLoads(random *rand.Rand) Batch {
	var b Batch
	for range 1000 {
		b.Add("SCRIPT", "LOAD", "return "+strconv.FormatUint(random.Uint64(), 10))
	}
	return b
}

func shortWords(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = "x"
	}
	return words
}

// endlessScripts keeps 50 connections busy with scripts that run to their limit.
func endlessScripts(a *Attacker) error { return a.together(50, command("EVAL", endless, "0")) }

// together sends a batch repeatedly from several new connections for some seconds.
func (a *Attacker) together(connections int, b Batch) error {
	var done sync.WaitGroup
	defer done.Wait()
	until := time.Now().Add(a.Hold)
	for range connections {
		c, err := a.Server.Dial(a.ctx, a.anyNetwork())
		if err != nil {
			return err
		}
		done.Go(func() {
			defer c.Close()
			for time.Now().Before(until) && a.exchangeOn(c, b) == nil { //nolint:revive // the condition does the work
			}
		})
	}
	return nil
}

// contendedScript runs a script while another connection changes its key all the time.
func contendedScript(a *Attacker) error {
	var changing sync.WaitGroup
	changing.Go(func() { _ = a.together(1, command("CL.THROTTLE", contendedKey, "1000", "1000", "1")) })
	defer changing.Wait()
	return a.together(1, command("EVAL", contended, "1", contendedKey))
}

// closedClients disconnect while their big EVALs wait behind endless scripts.
func closedClients(a *Attacker) error {
	var busy sync.WaitGroup
	busy.Go(func() { _ = a.together(8, command("EVAL", endless, "0")) })
	defer busy.Wait()
	big := command("EVAL", "return 1", "0", strings.Repeat("x", 3_800_000))
	for range 20 * a.Size {
		c, err := a.Server.Dial(a.ctx, a.anyNetwork())
		if err != nil {
			return err
		}
		n, err := c.Write(big.Bytes)
		_ = c.Close()
		if err != nil {
			return err
		}
		a.Stats.Bytes.Add(int64(n))
	}
	return nil
}

func hungryScripts() Batch {
	var b Batch
	for _, script := range []string{
		"local s = 'x' while true do s = s .. s end",
		"local t = {} for i = 1, 1e9 do t[i] = {i} end",
		"return string.rep('x', 1e9)",
		"local t = {} t[1000000] = 1 return #t",
		"local function f() return f() + 1 end return f()",
		"local t = {} for i = 1, 7000 do t[i] = string.rep('x', 1000) end return table.concat(t, string.rep('y', 100000))",
		"return cjson.encode(string.rep('\\1', 1e6))",
		"return string.find(string.rep('a', 100000), string.rep('a?', 1000) .. 'b')",
		"for i = 1, 1e9 do pcall(function() while true do end end) end",
		"return {unpack(ARGV)}",
	} {
		b.Add("EVAL", script, "0")
	}
	return b
}
