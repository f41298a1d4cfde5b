package attack

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Floods returns the names of the attacks on memory.
func Floods() []string {
	return []string{
		"distinct keys", "half-sent commands", "unread COMMAND DOCS", "WATCH of 10,000 keys", "EVALs of closed clients",
		"unread pipelines", "MONITORs that do not read",
	}
}

// floods take up memory, each on many connections.
func floods() []Attack {
	return []Attack{
		{Name: "distinct keys", Pause: 100 * time.Millisecond, Payload: distinctKeys},
		{Name: "half-sent commands", Pause: time.Second, Round: func(a *Attacker) error {
			b := command("ECHO", strings.Repeat("x", 4_000_000))
			return a.hold(20*a.Size, b.Bytes[:3_900_000])
		}},
		{Name: "unread COMMAND DOCS", Pause: time.Second, Round: func(a *Attacker) error {
			return a.hold(4*a.Size, []byte(strings.Repeat("COMMAND DOCS\r\n", 100)))
		}},
		{Name: "WATCH of 10,000 keys", Pause: time.Second, Round: func(a *Attacker) error {
			b := command(append([]string{"WATCH"}, numbered("watched:"+strconv.Itoa(a.Random.IntN(1000)), 10_000)...)...)
			return a.hold(6*a.Size, b.Bytes)
		}},
		{Name: "unread pipelines", Pause: time.Second, Round: func(a *Attacker) error {
			var b Batch
			for word := strings.Repeat("x", 16<<10); b.Replies < 3000; {
				b.Add("ECHO", word)
			}
			return a.hold(2*a.Size, b.Bytes)
		}},
		{Name: "MONITORs that do not read", Pause: time.Second, Round: func(a *Attacker) error {
			var busy sync.WaitGroup
			defer busy.Wait()
			busy.Go(func() { _ = a.together(1, command("ECHO", strings.Repeat("x", 10_000))) })
			return a.hold(4*a.Size, []byte("MONITOR\r\n"))
		}},
	}
}

// distinctKeys live for 5 s, so they are evicted before others.
func distinctKeys(random *rand.Rand) Batch {
	var b Batch
	for range 5000 {
		b.Add("CL.THROTTLE", "distinct:"+strconv.FormatUint(random.Uint64(), 36), "0", "1", "5")
	}
	return b
}
