package dashboard

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// write writes a response's body, compressed if the browser takes that. What a page of another site asked for is not: the
// page has what others may choose beside what they may not know, and its compressed size would tell of it.
func write(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header() // without Vary, for nothing is stored
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" || !takesGzip(r.Header.Get("Accept-Encoding")) {
		_, _ = w.Write(body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	to, _ := gzip.NewWriterLevel(w, gzip.BestCompression) // the level is one that there is
	_, _ = to.Write(body)
	_ = to.Close()
}

// takesGzip reads an Accept-Encoding header.
func takesGzip(accepted string) bool {
	for coding := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
