package attack

import (
	"math/rand/v2"
	"strconv"
	"time"

	"cellserver/lab/soak/internal/target"
)

// logins guess passwords among right ones.
func logins() []Attack {
	return []Attack{
		{Name: "wrong passwords", Pause: 500 * time.Millisecond, Payload: func(random *rand.Rand) Batch {
			b := command("AUTH", target.AppUser, strconv.FormatUint(random.Uint64(), 36))
			b.Add("HELLO", "3", "AUTH", "nobody", "guess")
			b.Add("AUTH", target.AppUser, target.AppPassword)
			return b
		}},
	}
}
