package observe

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func counts(e *ErrorReplies) map[string]int64 {
	all := map[string]int64{}
	e.Each(func(code string, n int64) { all[code] = n })
	return all
}

func TestErrorReplies(t *testing.T) {
	var e ErrorReplies
	for _, text := range []string{"ERR a", "ERR b", "ERR", "Cell error: c", "MY own", "MY other", ""} {
		e.Count(ErrorReply{Text: text})
	}
	if want := map[string]int64{"ERR": 3, "Cell": 1, "MY": 2, "": 1}; !maps.Equal(counts(&e), want) || e.Total() != 7 {
		t.Errorf("got %v, %d together", counts(&e), e.Total())
	}
	own := e.byOwnCode()
	if len(own) != len(ownCodes())+1 || own["ERR"] != 3 || own["Cell"] != 1 || own[otherCode] != 3 || own["NOAUTH"] != 0 {
		t.Errorf("got %v", own)
	}
	e.reset()
	if len(counts(&e)) != 0 || e.Total() != 0 || e.Ever() != 7 {
		t.Errorf("after reset: %v, %d together, %d since the start", counts(&e), e.Total(), e.Ever())
	}
}

// TestErrorCodesAreBounded: invented codes cannot fill the memory, and the server's own are still counted.
func TestErrorCodesAreBounded(t *testing.T) {
	var e ErrorReplies
	e.Count(ErrorReply{Text: strings.Repeat("x", maxCodeBytes+1) + " error"})
	for i := range 10_000 {
		e.Count(ErrorReply{Text: fmt.Sprintf("C%d error", i)})
	}
	all := counts(&e)
	if len(all) != maxCodes || all[strings.Repeat("x", maxCodeBytes)] != 1 || e.Total() != 10_001 {
		t.Errorf("%d codes, of %d errors", len(all), e.Total())
	}
	for range 2 {
		e.Count(ErrorReply{Text: "C0 error"})
		e.Count(ErrorReply{Text: "NOPERM error"})
	}
	if all := counts(&e); all["C0"] != 3 || all["NOPERM"] != 2 || len(all) != maxCodes+1 {
		t.Errorf("%d of a known code, %d of our own, %d codes", all["C0"], all["NOPERM"], len(all))
	}
}
