package attack

import (
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// junk must be ignored, or answered by a protocol error and a close.
func junk() []string {
	long := strings.Repeat("A", 70_000)
	cases := []string{
		"*1\r\nfoo\r\n", "*1\r\n\r\n", "$3 abc\r\n", "\"\r\n", "ECHO \"a\" 'b\r\n", "*1\r\n$4\r\nPINGxx", long, "*1" + long,
		"*1\r\n$" + long, "POST / HTTP/1.1\r\nHost: x\r\n\r\nDBSIZE\r\n", "Host: localhost\r\nDBSIZE\r\n", "*1048576\r\n$4\r\nPING\r\n",
		"*2147483647\r\n$4\r\n", "*2\r\n$4\r\nPING\r\n$2000000000\r\n" + long, "*2\r\n$4\r\nECHO\r\n$4194304\r\n" + long,
		strings.Repeat("*1\r\n", 10_000), strings.Repeat("*0\r\n", 10_000), strings.Repeat("\r\n", 10_000), strings.Repeat("\x00", 10_000),
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + long, "PING\r\n*\r\n", "CL.THROTTLE " + long[:5000] + " 1 1 1\r\n",
	}
	for _, n := range []string{"2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "-1", "-2", "-10", "+1", "01", "abc", "\x00", ""} {
		cases = append(cases, "*"+n+"\r\n", "*1\r\n$"+n+"\r\n", "*2\r\n$4\r\nECHO\r\n$"+n+"\r\n"+long[:100])
	}
	return cases
}

// frames break the protocol.
func frames() []Attack {
	cases := junk()
	return []Attack{
		{Name: "broken frames", Pause: 20 * time.Millisecond, Round: func(a *Attacker) error {
			return a.untilClosed(a.anyNetwork(), []byte(cases[a.Random.IntN(len(cases))]))
		}},
		{Name: "random bytes", Pause: 50 * time.Millisecond, Round: func(a *Attacker) error {
			return a.untilClosed(a.anyNetwork(), randomBytes(a.Random, a.Random.IntN(100_000)))
		}},
		{Name: "mutated commands", Pause: 20 * time.Millisecond, Round: func(a *Attacker) error {
			return a.untilClosed(a.anyNetwork(), mutated(a.Random))
		}},
		{Name: "byte by byte", Pause: 100 * time.Millisecond, Round: byteByByte},
	}
}

// untilClosed sends bytes and a FIN, and reads until the server closes.
func (a *Attacker) untilClosed(network string, b []byte) error {
	c, err := a.Server.Dial(a.ctx, network)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		return err
	}
	if err := c.HalfClose(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// mutated returns ordinary commands with a few bytes replaced.
func mutated(random *rand.Rand) []byte {
	var b Batch
	for range 20 {
		b.Add("CL.THROTTLE", "mutated", "15", "30", "60", "1")
		b.Add("EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 15, 30, 60)", "1", "mutated")
		b.Add("SCAN", "0", "MATCH", "mutated*", "COUNT", "10")
	}
	const letters = "*$\r\n-0123456789\x00A"
	for range 1 + random.IntN(5) {
		b.Bytes[random.IntN(len(b.Bytes))] = letters[random.IntN(len(letters))]
	}
	return b.Bytes
}

func byteByByte(a *Attacker) error {
	c, err := a.Server.Dial(a.ctx, a.anyNetwork())
	if err != nil {
		return err
	}
	defer c.Close()
	b := command("CL.THROTTLE", "slow", "15", "30", "60", "1")
	for i := range b.Bytes {
		if _, err := c.Write(b.Bytes[i : i+1]); err != nil {
			return err
		}
		sleep(a.ctx, 10*time.Millisecond)
	}
	reply, err := c.Reply()
	a.Stats.note(reply)
	return err
}
