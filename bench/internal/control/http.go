package control

import (
	"io"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"
)

// What GET /v1/check/NAME answers, as of cellserver's rules for the doors.
const body = `{"allowed":true,"limit":1000001,"remaining":1000000,"retry_after_ms":-1,"reset_after_ms":86400}` + "\n"

// headers are those of the answer beside Date and Content-Length.
func headers() [][2]string {
	return [][2]string{
		{"Cache-Control", "no-store"},
		{"Content-Type", "application/json"},
		{"Ratelimit", `"api";r=1000000;t=87`},
		{"Ratelimit-Policy", `"api";q=1000001;w=86400087`},
		{"X-Content-Type-Options", "nosniff"},
	}
}

// netHTTP is net/http's server.
type netHTTP struct{ *http.Server }

func newHTTP() server {
	all := headers()
	return netHTTP{&http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			for _, one := range all {
				h.Set(one[0], one[1])
			}
			h.Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = io.WriteString(w, body)
		}),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
	}}
}

func (s netHTTP) stop() { _ = s.Close() }

// fastHTTP is fasthttp's server.
type fastHTTP struct{ *fasthttp.Server }

func newFastHTTP() server {
	type header struct{ name, value []byte }
	var all []header
	for _, one := range headers() {
		all = append(all, header{[]byte(one[0]), []byte(one[1])})
	}
	answer := []byte(body)
	return fastHTTP{&fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			for i := range all {
				ctx.Response.Header.SetCanonical(all[i].name, all[i].value)
			}
			ctx.Response.SetBodyRaw(answer)
		},
		Concurrency: maxConns, MaxConnsPerIP: maxConns,
		ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		ReadBufferSize: bufferBytes, WriteBufferSize: bufferBytes, MaxRequestBodySize: 64 << 10,
		NoDefaultServerHeader: true, NoDefaultContentType: true, DisablePreParseMultipartForm: true,
		Logger: silent{},
	}}
}

func (s fastHTTP) stop() { _ = s.Shutdown() }

// silent logs nothing, as a generator that resets its connections would be most of the log.
type silent struct{}

func (silent) Printf(string, ...any) {}
