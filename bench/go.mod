module cellserver/bench

go 1.26.0

replace cellserver => ../

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/spf13/pflag v1.0.10
	golang.org/x/sys v0.49.0
)
