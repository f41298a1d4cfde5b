// Command cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE as the
// redis-cell module does.
package main

import (
	"os"

	"cellserver/internal/app"
)

func main() { os.Exit(app.Main()) }
