package attack

import (
	"strconv"
	"strings"
	"time"
)

// larges ask for megabytes of values at once.
func larges() []Attack {
	const values, calls = 50, 400
	large := func(name string, ask func(b *Batch)) Attack {
		return Attack{Name: name, Pause: 500 * time.Millisecond, Payload: once(func() Batch {
			var b Batch
			for i := range values {
				b.Add("SET", "large:"+strconv.Itoa(i), strings.Repeat("x", 64<<10), "EX", "60")
			}
			ask(&b)
			return b
		})}
	}
	gets := func(b *Batch, n int) {
		for i := range n {
			b.Add("GET", "large:"+strconv.Itoa(i%values))
		}
	}
	inExec := func(n int) func(b *Batch) {
		return func(b *Batch) {
			b.Add("MULTI")
			gets(b, n)
			b.Add("EXEC")
		}
	}
	return []Attack{
		large("400 GET of 64 KB", func(b *Batch) { gets(b, calls) }),
		large("MGET of 400 times 64 KB", func(b *Batch) {
			words := []string{"MGET"}
			for i := range calls {
				words = append(words, "large:"+strconv.Itoa(i%values))
			}
			b.Add(words...)
		}),
		large("EXEC of 400 GET of 64 KB", inExec(calls)),
		large("EXEC of more than may be replied", inExec(2*calls)),
	}
}
