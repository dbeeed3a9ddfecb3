# Made by `larder setup hf`, for huggingface_hub and what builds on it. Xet transfers would go around the node.
HF_ENDPOINT=http://127.0.0.1:8098/m/huggingface
HF_HUB_DISABLE_XET=1
export HF_ENDPOINT HF_HUB_DISABLE_XET
