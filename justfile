# The habits of the house as commands; each is plain cargo or a script of .ci/.

# What a commit needs to pass: format, lints, tests.
check:
    bash .ci/run

# The tests alone.
test *args:
    cargo test --locked {{args}}

# Real clients through real nodes; needs root and nginx. `just full curl git` runs those two alone.
full *clients:
    .ci/full {{clients}}

# Formats the code.
fmt:
    cargo fmt

# What takes minutes: a thousand times kill -9, ten minutes of load, floods. `just endurance kill_9` runs those alone.
endurance *names:
    cargo test --locked --test integration -- --ignored --nocapture --test-threads 1 endurance::{{names}}

# Fuzzes what the network can reach, each target for so many seconds.
fuzz *args:
    .ci/fuzz {{args}}

# Changes rooms one place at a time, and wants a unit test to notice.
mutants *rooms:
    .ci/mutants {{rooms}}

# Plays the crowd in one thread: `just sim 500 1000` is 500 nodes, a thousand seeds each.
sim nodes="100" seeds="20":
    LARDER_SIM_NODES={{nodes}} LARDER_SIM_SEEDS={{seeds}} cargo test --locked --test simulation --release -- --nocapture
