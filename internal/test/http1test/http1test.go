// Package http1test makes requests of HTTP/1 that servers may read in more than one way.
package http1test

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// Get is a plain request.
const Get = "GET /v1/check/api?key=u%20%2B1&quantity=2 HTTP/1.1\r\nHost: localhost:6381\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"

// Post is one with a body.
const Post = "POST /v1/check HTTP/1.1\r\nhost: a.example\r\nContent-Type: application/json\r\ncontent-length: 26\r\n\r\n" + `{"limit":"api","key":"u1"}`

// spices are what servers differ on.
func spices() []string {
	return []string{
		"\r\n", "\n", "\r", " ", "\t", "\x00", "\x0b", "\x7f", "\xff", "%", "%2", "%00", "%2f", "%zz", "//", "/../", "*", "#", "?", "&", "+", ":", ";", ",", "0", "1", "5", "\r\n\r\n", "\n\n",
		"Content-Length: 5\r\n", "Content-Length: 26\r\n", "content-length:5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n", "transfer-encoding:\tchunked\r\n", "Expect: 100-continue\r\n",
		"Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: Content-Length\r\n", "Host: y\r\n", "Trailer: Host\r\n", "Upgrade: h2c\r\n", "X-A: b\r\n", " folded\r\n", "5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "GET ", "POST ", "HEAD ", Get, Post,
	}
}

// Mutated returns one or two requests, changed in a few places.
func Mutated(random *rand.Rand) []byte {
	in := []byte([]string{Get, Post, Get + Post, Post + Get, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + Get}[random.IntN(5)])
	all := spices()
	for range random.IntN(4) {
		at := random.IntN(len(in) + 1)
		switch to := min(len(in), at+random.IntN(8)); random.IntN(5) {
		case 0:
			in = slices.Delete(in, at, to)
		case 1:
			in = slices.Insert(in, at, slices.Clone(in[at:to])...)
		case 2:
			if at < len(in) {
				in[at] = byte(random.IntN(256))
			}
		default:
			if line := bytes.IndexByte(in[at:], '\n'); line >= 0 && random.IntN(2) == 0 {
				at += line + 1
			}
			in = slices.Insert(in, at, []byte(all[random.IntN(len(all))])...)
		}
	}
	return in
}
