// The linters of make check besides vet and staticcheck, in one program. It has
// a module of its own because the service needs none of what it imports.
module atelier/build/lint

go 1.26.0

require (
	github.com/golangci/misspell v0.6.0
	github.com/golangci/unconvert v0.0.0-20250410112200-a129a6e6413e
	github.com/gordonklaus/ineffassign v0.1.0
	github.com/jingyugao/rowserrcheck v1.1.1
	github.com/kisielk/errcheck v1.9.0
	github.com/mgechev/revive v1.9.0
	github.com/nishanths/exhaustive v0.12.0
	github.com/polyfloyd/go-errorlint v1.8.0
	github.com/sanposhiho/wastedassign/v2 v2.1.0
	github.com/securego/gosec/v2 v2.22.3
	golang.org/x/tools v0.48.0
)

require (
	github.com/ccojocar/zxcvbn-go v1.0.2 // indirect
	github.com/fatih/structtag v1.2.0 // indirect
	github.com/hashicorp/go-version v1.7.0 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.24.0 // indirect
)
