package attack

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// execs use commands on all keys or very many, alone and in transactions.
func execs() []Attack {
	return []Attack{
		{Name: "EXEC of 2,500 DBSIZE", Pause: 2 * time.Second, Payload: once(func() Batch {
			return inExec(2500, func(int) []string { return []string{"DBSIZE"} })
		})},
		{Name: "EXEC of 18,000 CL.THROTTLE", Pause: 2 * time.Second, Payload: once(func() Batch {
			return inExec(18_000, func(i int) []string {
				return []string{"CL.THROTTLE", "exec:" + strconv.Itoa(i), "0", "1", "10"}
			})
		})},
		{Name: "EXEC of KEYS", Pause: 2 * time.Second, Payload: once(func() Batch {
			return inExec(1, func(int) []string { return []string{"KEYS", "no*such"} })
		})},
		{Name: "DEL of 100,000 keys", Pause: 2 * time.Second, Payload: once(func() Batch {
			return command(append([]string{"DEL"}, numbered("deleted:", 100_000)...)...)
		})},
		{Name: "EXEC that watches what changes", Pause: 2 * time.Second, Payload: watchedExec},
	}
}

// inExec returns a transaction of commands.
func inExec(n int, command func(int) []string) Batch {
	var b Batch
	b.Add("MULTI")
	for i := range n {
		b.Add(command(i)...)
	}
	b.Add("EXEC")
	return b
}

func numbered(prefix string, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("%s%06d", prefix, i)
	}
	return words
}

// watchedExec watches many keys, changes one, and executes.
func watchedExec(random *rand.Rand) Batch {
	b := command(append([]string{"WATCH"}, numbered("watched:", 2000)...)...)
	b.Add("CL.THROTTLE", fmt.Sprintf("watched:%06d", random.IntN(2000)), "9", "1", "1")
	commands := inExec(100, func(i int) []string { return []string{"CL.THROTTLE", "watched:" + strconv.Itoa(i), "9", "1", "1"} })
	return Batch{Bytes: append(b.Bytes, commands.Bytes...), Replies: b.Replies + commands.Replies}
}
