package server

import (
	"net"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// leaving is a session that hands its connection over while others end it.
type leaving struct {
	echoes
	ends func(peer.Conn)
}

func (s *leaving) Feed(_, out []byte) (int, []byte, peer.Status) {
	s.ends(s.conn)
	return 0, out, peer.HandOver
}

// TestEndedAtHandOver: CLIENT KILL and eviction of a connection that is about to be handed over end it.
func TestEndedAtHandOver(t *testing.T) {
	t.Parallel()
	for want, ends := range map[Reason]func(peer.Conn){ReasonKilled: peer.Conn.Kill, ReasonMemory: peer.Conn.Evict} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, 1, l, nil)
		ended := make(chan Reason, 1)
		door := &GuestServer{
			NewSession: func(_ peer.Peer, conn peer.Conn) peer.Session { return &leaving{echoes{conn: conn}, ends} },
			TakeOver: func(nc net.Conn, g *Guest, _, _ []byte) func(Reason) {
				return func(r Reason) {
					_ = nc.Close()
					g.Leave(r)
					ended <- r
				}
			},
		}
		at, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = at.Close() }()
		nc, err := net.Dial("tcp", at.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		visitor, err := at.Accept()
		if err != nil {
			t.Fatal(err)
		}
		g, refusal := s.Enter(visitor, peer.HTTP)
		if refusal != "" || !s.ServeGuest(visitor, g, door) {
			t.Fatal("not served", refusal)
		}
		if _, err := nc.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if got, ok := patience.Receive(ended); !ok || got != want {
			t.Errorf("%v: got %v, %v", want, got, ok)
		}
	}
}
