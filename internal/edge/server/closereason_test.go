package server

import (
	"regexp"
	"strconv"
	"testing"
)

// checkClosed expects that the server's only connection has ended for a reason, and that the log tells it once.
func (s *testServer) checkClosed(t *testing.T, why string) {
	t.Helper()
	sum := uint64(0)
	for reason, n := range s.Stats().Closed {
		if sum += n; n > 0 && why != "" && reason != why {
			t.Errorf("the end is counted as %s, want %s", reason, why)
		}
	}
	log := s.log.String()
	lines := regexp.MustCompile(`(?m)level=DEBUG .*$`).FindAllString(log, -1)
	want := regexp.MustCompile(`"client disconnected" client=\S+ name=me tls=` + strconv.FormatBool(s.tls != nil) + ` reason=` + why +
		`\w* received_bytes=[1-9]\d* sent_bytes=[1-9]\d* age=\S+s$`)
	if sum != 1 || len(lines) != 1 || !want.MatchString(lines[0]) {
		t.Errorf("%d ends are counted, and the log has %q", sum, lines)
	}
}

func TestBytesAreCounted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		one, two := s.dial(t), s.dial(t)
		ask(t, one, "0123456789\n", "0123456789\n")
		ask(t, two, "0123456789\n", "0123456789\n")
		one.Close()
		s.awaitClients(t, 1)
		const least = 2 * 11
		s.await(t, func(st Stats) bool {
			return s.tls == nil && st.Received == least && st.Sent == least || s.tls != nil && st.Received > 500 && st.Sent > 500
		})
	})
}
