package attack

import (
	"slices"
	"time"
)

// Idle is no attack, but what the others are compared with.
const Idle = "idle control"

// networks abuse connections rather than commands.
func networks() []Attack {
	return []Attack{
		{Name: "RST in the middle of everything", Pause: 100 * time.Millisecond, Round: interrupt},
		{Name: "half-closed connections", Pause: 200 * time.Millisecond, Round: func(a *Attacker) error {
			return a.untilClosed(a.anyNetwork(), a.anyPayload().Bytes)
		}},
		{Name: "connection churn", Pause: 200 * time.Millisecond, Round: func(a *Attacker) error {
			for range 50 {
				c, err := a.Server.DialRaw(a.ctx, a.anyNetwork())
				if err != nil {
					return err
				}
				if a.Random.IntN(2) == 0 {
					c.Reset()
				}
				_ = c.Close()
			}
			return nil
		}},
		{Name: Idle, Round: func(a *Attacker) error { sleep(a.ctx, time.Second); return nil }},
		{Name: "TLS junk", Pause: 200 * time.Millisecond, Round: tlsJunk},
	}
}

// anyPayload returns the payload of another attack.
func (a *Attacker) anyPayload() Batch {
	others := slices.DeleteFunc(All(), func(other Attack) bool { return other.Payload == nil })
	return others[a.Random.IntN(len(others))].Payload(a.Random)
}

// interrupt ends a connection within another attack's payload, sometimes while replies arrive.
func interrupt(a *Attacker) error {
	b := a.anyPayload().Bytes
	c, err := a.Server.Dial(a.ctx, a.anyNetwork())
	if err != nil {
		return err
	}
	defer c.Reset()
	if a.Random.IntN(2) == 0 {
		b = b[:a.Random.IntN(len(b))]
	}
	_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(b); err != nil {
		return err
	}
	sleep(a.ctx, time.Duration(a.Random.IntN(50))*time.Millisecond)
	return nil
}

// tlsJunk sends invalid data to the TLS port, or the beginning of a handshake.
func tlsJunk(a *Attacker) error {
	c, err := a.Server.DialRaw(a.ctx, "tls")
	if err != nil {
		return err
	}
	defer c.Reset()
	junk := randomBytes(a.Random, a.Random.IntN(20_000))
	switch a.Random.IntN(3) {
	case 0:
		junk = append([]byte("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"), junk...) // a ClientHello's header
	case 1:
		junk = []byte("*1\r\n$4\r\nPING\r\n")
	}
	_, err = c.Write(junk)
	sleep(a.ctx, 100*time.Millisecond)
	return err
}
