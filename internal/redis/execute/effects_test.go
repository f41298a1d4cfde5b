package execute

import (
	"bytes"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/transact"
	"cellserver/internal/wire/peer"
)

// TestKeptLinesAreBounded: the line that reaches the bound is the last one, and a word on it follows once.
func TestKeptLinesAreBounded(t *testing.T) {
	const word = `"... (more commands)"`
	for _, tt := range []struct {
		kept, line int
		want       bool // the line is kept
		word       bool
	}{
		{0, 10, true, false},
		{maxInnerLineBytes - 11, 10, true, false},
		{maxInnerLineBytes - 10, 10, true, true},
		{maxInnerLineBytes - 1, 10, true, true},
		{maxInnerLineBytes, 10, false, false}, // it has had its word
	} {
		for mode, from := range map[Mode]string{InScript: "lua", InExec: "192.0.2.1:5000"} {
			client := Executor{Client: clients.New(peer.Peer{Addr: "192.0.2.1:5000"}, nil, 1)}
			child, kept := client.Within(mode, NestedRole{}, &transact.Space{NowNs: 1})
			kept.monitored = make([]byte, tt.kept)
			child.Effects.Send(bytes.Repeat([]byte("x"), tt.line))
			child.Effects.Send(nil)
			got := string(kept.monitored[tt.kept:])
			if strings.HasPrefix(got, "xxxxxxxxxx") != tt.want || strings.Contains(got, from+"] "+word) != tt.word || strings.Count(got, word) > 1 {
				t.Errorf("%d kept, and %d more: %q", tt.kept, tt.line, got)
			}
		}
	}
}
