package wire

//go:generate go tool -modfile=../../../build/tools/go.mod oapi-codegen -config oapi.yaml ../../../api/openapi.yaml
