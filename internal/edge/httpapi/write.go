package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// maxCounted is the length up to which net/http counts a body by itself, without an allocation.
const maxCounted = 2048

// write sends an answer. Headers are set by their canonical names, which takes less than Set.
func (a *API) write(w http.ResponseWriter, to *answer) {
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = a.noStore, a.noSniff
	h["Content-Type"] = a.json
	if to.problem {
		h["Content-Type"] = a.problem
	}
	if len(to.body) >= maxCounted {
		h["Content-Length"] = []string{strconv.Itoa(len(to.body))}
	}
	if len(to.rates.items) > 0 {
		a.Headers.set(h, to)
	}
	if to.retryMs >= 0 {
		h["Retry-After"] = []string{strconv.FormatInt(secondsOf(to.retryMs), 10)}
	}
	if to.allow != "" {
		h["Allow"] = []string{to.allow}
	}
	if to.login {
		h["Www-Authenticate"] = []string{"X-Cellserver-Token"}
	}
	if to.close {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(to.status)
	_, _ = w.Write(to.body) // a failure ends the connection
}

// secondsOf rounds up, so that nobody comes too early.
func secondsOf(ms int64) int64 {
	sec := ms / 1000
	if ms%1000 > 0 {
		sec++
	}
	return sec
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // never fails for a string
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

const maxQuoted = 64 // bytes of a client's text in a refusal

// quote quotes a client's text for a refusal.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return strconv.Quote(text)
}
