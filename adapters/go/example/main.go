// Example is a web server that allows each address what the limit "visitor" says.
package main

import (
	"log"
	"net/http"

	cellserver "cellserver/adapters/go"

	"github.com/redis/go-redis/v9"
)

func main() {
	limiter := &cellserver.Limiter{Client: redis.NewClient(cellserver.Options("127.0.0.1:6380"))}
	perVisitor := cellserver.Middleware{Limiter: limiter, Limit: "visitor", Key: cellserver.ByAddress()}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	log.Fatal(http.ListenAndServe("127.0.0.1:8000", perVisitor.Handler(hello)))
}
