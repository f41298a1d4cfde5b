package dashboard

import (
	"compress/gzip"
	"net/http"
)

// write writes a response's body, compressed if the browser takes that. What a page of another site asked for is not: the
// page has what others may choose beside what they may not know, and its compressed size would tell of it.
func (p *Page) write(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header() // without Vary, for nothing is stored
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" || weightOf(r.Header.Get("Accept-Encoding"), "gzip") == 0 {
		_, _ = w.Write(body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	to, ok := p.compressors.Get().(*gzip.Writer) // a megabyte each
	if ok {
		to.Reset(w)
	} else {
		to, _ = gzip.NewWriterLevel(w, gzip.BestCompression) // the level is one that there is
	}
	_, _ = to.Write(body)
	_ = to.Close()
	to.Reset(nil)
	p.compressors.Put(to)
}
