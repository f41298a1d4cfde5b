package attack

import (
	"bufio"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// kills need permission.
func kills() []Attack {
	return []Attack{
		{Name: "CLIENT KILL of anyone", Pause: 500 * time.Millisecond, Round: killAnyone},
		{Name: "SCRIPT KILL and CLIENT LIST", Pause: 200 * time.Millisecond, Payload: func(*rand.Rand) Batch {
			b := command("SCRIPT", "KILL")
			b.Add("CLIENT", "LIST")
			b.Add("INFO", "everything")
			b.Add("SLOWLOG", "GET", "-1")
			b.Add("SCRIPT", "KILL")
			return b
		}},
	}
}

// killAnyone closes three clients, honest ones included.
func killAnyone(a *Attacker) error {
	c, err := a.Server.Dial(a.ctx, a.anyNetwork())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "CLIENT LIST\r\nQUIT\r\n"); err != nil {
		return err
	}
	var ids []string
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id="); ok {
			id, _, _ = strings.Cut(id, " ")
			ids = append(ids, id)
		}
	}
	var b Batch
	for range min(3, len(ids)) {
		b.Add("CLIENT", "KILL", "ID", ids[a.Random.IntN(len(ids))])
	}
	return a.exchange(b)
}
