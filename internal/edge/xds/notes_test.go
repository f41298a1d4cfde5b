package xds_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"cellserver/internal/decide/envoyconfig/configpb"
)

// TestNotesAreLogged, but no more of them than tell what is wrong.
func TestNotesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		d := domain("a", 1)
		for i := range 25 {
			d.Descriptors = append(d.Descriptors, &configpb.RateLimitDescriptor{Key: strconv.Itoa(i) + strings.Repeat("x", 10_000), ShadowMode: true})
		}
		s.send(t, answer(t, "1", d))
		s.next()
		text := c.log.String()
		if n := strings.Count(text, "a descriptor of the xDS server may be a mistake"); n != 10 || !strings.Contains(text, "more descriptors of the xDS server may be mistakes\" count=15") {
			t.Errorf("%d notes in\n%.2000s", n, text)
		}
		if !strings.Contains(text, "shadow_mode has no effect without a limit") || len(text) > 20_000 {
			t.Errorf("the log has %d bytes: %.2000s", len(text), text)
		}
	})
}
