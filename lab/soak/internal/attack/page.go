package attack

import (
	"strings"
	"sync"
	"time"
)

// pages take up the connections of the metrics address.
func pages() []Attack {
	slow := func(name, request string) Attack {
		return Attack{Name: name, Pause: 2 * time.Second, Round: func(a *Attacker) error { return a.holdPages(20, request) }}
	}
	return []Attack{
		slow("HTTP that never ends its headers", "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: "),
		slow("HTTP that never sends its body", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx"),
		slow("HTTP that does not read", strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)),
		slow("HTTP of another host's page", "GET / HTTP/1.1\r\nHost: attacker.example\r\nOrigin: http://attacker.example\r\n\r\n"),
		slow("HTTP junk", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n*1\r\n$4\r\nPING\r\n"),
	}
}

func (a *Attacker) holdPages(connections int, request string) error {
	var sent sync.WaitGroup
	defer sent.Wait()
	for range connections {
		c, err := a.Server.DialRaw(a.ctx, "metrics")
		if err != nil {
			return err
		}
		defer c.Close()
		sent.Go(func() { _, _ = c.Write([]byte(request)) })
	}
	sleep(a.ctx, a.Hold)
	return nil
}
