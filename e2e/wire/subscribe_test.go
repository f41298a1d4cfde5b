package wire

import (
	"io"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

const (
	hello      = "__sentinel__:hello"
	changed    = "__Booksleeve_MasterChanged"
	subscribed = "$9\r\nsubscribe\r\n$18\r\n" + hello + "\r\n:1\r\n"
)

// message returns a message on a channel by RESP2.
func message(channel, text string) string {
	return resptest.Encode("message", channel, text)
}

// subscriptions returns what a server replies to clients that publish and subscribe.
func subscriptions(t *testing.T, p *harness.Process) string {
	t.Helper()
	var all strings.Builder
	for _, in := range []string{
		"SUBSCRIBE @\r\nPING\r\nPING x\r\nPING a b\r\nGET a\r\nGET\r\nPUBLISH @ x\r\nCONFIG GET x\r\nNOSUCH\r\nHELLO 3\r\nMULTI\r\nEXEC\r\nMONITOR\r\n" +
			"UNSUBSCRIBE b\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE @\r\nPING\r\n",
		"SUBSCRIBE @ @\r\nSUBSCRIBE @\r\nRESET\r\nPUBLISH @ x\r\nGET a\r\n",
		"CLIENT SETNAME x\r\nSUBSCRIBE @\r\nQUIT\r\n",
		"PUBLISH @\r\nPUBLISH @ x y\r\nSUBSCRIBE\r\nMULTI\r\nPUBLISH @ x\r\nEXEC\r\n",
		"SUBSCRIBE %\r\nSUBSCRIBE @ %\r\nPING\r\nGET a\r\nUNSUBSCRIBE %\r\nUNSUBSCRIBE\r\nPUBLISH % x\r\nPING\r\n",
	} {
		nc := p.Dial(t)
		harness.Send(t, nc, strings.NewReplacer("@", hello, "%", changed).Replace(in)+"QUIT\r\n")
		got, err := io.ReadAll(nc)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(string(got) + "\n")
	}
	old, modern, other := p.Dial(t), p.Dial(t), p.Dial(t)
	harness.Exchange(t, old, "SUBSCRIBE "+hello+"\r\n", "*3\r\n"+subscribed)
	harness.SayTo(t, modern, "HELLO 3\r\nSUBSCRIBE "+hello+"\r\n", ">3\r\n"+subscribed)
	all.WriteString(harness.Reply(t, other, "PUBLISH "+hello+" \"a b\"") + "\n")
	all.WriteString(harness.Reply(t, other, `EVAL "return redis.call('publish', ARGV[1], ARGV[2])" 0 `+hello+" script") + "\n")
	harness.SayTo(t, other, "MULTI\r\nPUBLISH "+hello+" \"\"\r\nPUBLISH "+hello+" x\r\n", "+QUEUED\r\n+QUEUED\r\n")
	all.WriteString(harness.Reply(t, other, "EXEC") + "\n")
	harness.Exchange(t, old, "", message(hello, "a b")+message(hello, "script")+message(hello, "")+message(hello, "x"))
	harness.Exchange(t, old, "SUBSCRIBE "+changed+"\r\n", "*3\r\n$9\r\nsubscribe\r\n$26\r\n"+changed+"\r\n:2\r\n")
	all.WriteString(harness.Reply(t, other, "PUBLISH "+changed+" *") + "\n")
	harness.Exchange(t, old, "", message(changed, "*"))
	all.WriteString(harness.Reply(t, other, "PUBLISH "+hello+" end") + "\n")
	all.WriteString(harness.ReadTo(t, old, "\r\nend\r\n") + "\n" + harness.ReadTo(t, modern, "\r\nend\r\n") + "\n")
	all.WriteString(harness.SayTo(t, modern, "SUBSCRIBE "+changed+" "+hello+"\r\nPING\r\nGET a\r\nUNSUBSCRIBE b "+changed+"\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nECHO end\r\n", "\r\nend\r\n") + "\n")
	all.WriteString(harness.Reply(t, other, "CLIENT KILL TYPE pubsub") + "\n")
	if n, err := old.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes for a killed subscriber", n)
	}
	return all.String()
}

// TestSubscribeAsRedis: clients of the channels see the bytes of a real redis-server's, with every
// connection driver.
func TestSubscribeAsRedis(t *testing.T) {
	want := subscriptions(t, harness.StartRedis(t))
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		if got := subscriptions(t, startServer(t)); got != want {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}

// TestSlowSubscriber: a subscriber that does not read is closed, and delays no other client.
func TestSlowSubscriber(t *testing.T) {
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--max-output-bytes", "1048576")
		slow, nc := p.Dial(t), p.Dial(t)
		harness.SayTo(t, slow, "SUBSCRIBE "+hello+"\r\n", subscribed)
		publish := strings.Repeat(resptest.Encode("PUBLISH", hello, strings.Repeat("x", 4000)), 20) + "PING\r\n"
		for sent := 0; !strings.Contains(p.Log.String(), "subscriber of __sentinel__:hello is too slow"); sent++ {
			if sent == 5000 {
				t.Fatal("it was not closed")
			}
			harness.SayTo(t, nc, publish, "+PONG\r\n")
		}
		if got := harness.Reply(t, nc, "PUBLISH "+hello+" x"); got != ":0" {
			t.Errorf("receivers %s", got)
		}
		p.Eventually(t, "close it", func() bool { return p.Metric(t, "cellserver_connections") <= 1 })
	})
}
