package door

import "net/http"

// CloseDoubtful has an HTTP/1 connection closed after a request whose end a proxy may see elsewhere, so that
// nothing behind it is taken for a request: one with Transfer-Encoding, as RFC 9112, 6.1, demands beside
// Content-Length, and one of HTTP/1.0, in which net/http ignores that header.
func CloseDoubtful(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 || !r.ProtoAtLeast(1, 1) {
		w.Header().Set("Connection", "close")
	}
}
