package attack

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// waits are by clients that wait for their turn, and go away instead.
func waits() []Attack {
	return []Attack{
		{Name: "waiting for a turn", Pause: time.Second, Round: func(a *Attacker) error {
			key := "waited:" + strconv.Itoa(a.Random.IntN(4))
			b := command("CL.BTHROTTLE", key, strconv.Itoa(a.Random.IntN(3)), "1", strconv.Itoa(1+a.Random.IntN(60)), "1", "0")
			var moved sync.WaitGroup
			defer moved.Wait()
			moved.Go(func() {
				for range 5 {
					sleep(a.ctx, a.Hold/6)
					_ = a.exchange(moves(key))
				}
			})
			return a.hold(200*a.Size, b.Bytes)
		}},
		{Name: "waiting for a moment", Pause: 50 * time.Millisecond, Payload: func(random *rand.Rand) Batch {
			var b Batch
			for i := range 500 {
				b.Add("CL.BTHROTTLE", "waited:"+strconv.Itoa(random.IntN(4)), strconv.Itoa(i), "1000", "1", "1", "0.001")
			}
			return b
		}},
	}
}

// moves have those who wait for a key move up.
func moves(key string) Batch {
	b := command("CL.REFUND", key, "1", "1", "60", "100")
	b.Add("MULTI")
	b.Add("CL.REFUND", key, "1", "1", "60", "3")
	b.Add("CLIENT", "UNBLOCK", "1", "ERROR")
	b.Add("EXEC")
	b.Add("DEL", key)
	return b
}
