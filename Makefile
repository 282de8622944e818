# The front door. Each target does its own set-up: it says what is missing, and installs it where it may.
.PHONY: help demo test build lint crash soak fuzz bench

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

demo: ## the story of a lost answer, told by real processes over a simulated engine
	@scripts/demo.sh

test: ## every test; one group with T=engine (docs/testing.md has them all)
	@scripts/test.sh $(T)

crash: ## a node under load, killed KILLS times (1000), half of the time with the power lost
	@RELATCH_KILLS=$${KILLS:-1000} scripts/siege.sh killed_again_and_again_under_load

soak: ## the same for MINUTES (30), beside an engine that fails in every way it has
	@RELATCH_SOAK_S=$$(($${MINUTES:-30} * 60)) scripts/siege.sh killed_again_and_again_beside_an_engine

fuzz: ## the checks of tests/fuzz, led by coverage: SECONDS_EACH (120) for each subject, or for one, S=subject
	@scripts/fuzz.sh $(S)

build: ## the release binary; the last line is its path
	@scripts/build.sh

bench: ## measures relatch on this machine's disk, and writes docs/benchmarks.md
	@scripts/bench.sh

lint: ## formatting, clippy, rustdoc, dependencies, shell scripts
	@scripts/lint.sh
